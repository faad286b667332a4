/** How a call on a fleet gets its place and reports its end: from a block, or by requests of its own. */
import type { FleetCallNote, TurnEnd } from "../contract/trajectory.ts";
import { openCalls } from "../core/rollout/call-ends.ts";
import type { Rollout } from "../core/rollout/rollout.ts";
import type { HeldBlock } from "./held-block.ts";
import type { Caller, Taken } from "./place-block.ts";
import type { CallKind, CallLease, EndedCall, FleetRpc } from "./rpc.ts";
import { contradicted } from "./weights.ts";

export type CallEnd = Pick<EndedCall, "outcome" | "label">;
type Ends = Pick<FleetCallNote, "end" | "open" | "ends">;

export interface CallWay {
  readonly lease: CallLease;
  /** Called once, when the call has ended. */
  readonly end: (lease: Taken, end: CallEnd) => Promise<void>;
  /** What the turn notes of its end, and of the ends of earlier turns. Called after `end`. */
  readonly note: (lease: Taken, from: Rollout) => Ends;
}

/** Throws if the fleet cannot be reached. */
export async function blockWay(block: HeldBlock, kind: CallKind, caller: Caller): Promise<CallWay> {
  return {
    lease: await block.take(caller),
    end: async ({ number, version, generation = 0 }, end) => {
      const weights = version === null ? null : { run_id: kind.weights_of ?? kind.run_id, generation, version };
      const isFailure = end.outcome !== "answered" && end.outcome !== "aborted";
      // The fleet must have this report before the next call begins.
      await block.end(number, { ...end, urgent: isFailure || contradicted(end.label, weights) !== null });
    },
    // Only the calls of a training run need a version, and so the number of their end.
    note: ({ number }, from) => (kind.trains ? noteOf(block, number, from) : { end: null }),
  };
}

function noteOf(block: HeldBlock, number: number, { turns }: Rollout): Ends {
  const end = block.takeNumber(number);
  const ends = openCalls(turns).flatMap(({ turn, number: earlier }): TurnEnd[] => {
    const known = block.takeNumber(earlier);
    return known === undefined ? [] : [{ turn, end: known }];
  });
  return { end: end ?? null, ...(end === undefined && { open: true }), ...(ends.length > 0 && { ends }) };
}

/** While a new version is deployed, a fleet's object may be of the release that has no blocks. */
export function hasNoBlocks(thrown: unknown): boolean {
  return thrown instanceof TypeError && thrown.message.includes("does not implement the method");
}

/** Two requests for one call. */
export async function singleWay(
  fleet: () => Pick<FleetRpc, "begin" | "ended">,
  kind: CallKind,
  caller: Caller & { readonly turn: number },
  noteFailure: (thrown: unknown) => void,
): Promise<CallWay> {
  let number: number | null = null;
  return {
    lease: await fleet().begin({ ...kind, ...caller }),
    end: async ({ number: of, replica_id }, end) => {
      try {
        number = (await fleet().ended({ number: of, replica_id, ...end }))?.end ?? null;
      } catch (thrown) {
        noteFailure(thrown);
      }
    },
    note: () => ({ end: number }),
  };
}
