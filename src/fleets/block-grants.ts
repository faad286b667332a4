/** Renews the block of places of an object: takes its reports, and grants places to its calls that wait. */
import { freshMs } from "./block-times.ts";
import type { Blocks } from "./blocks.ts";
import { type Choice, choose } from "./choose.ts";
import type { Numbers } from "./numbers.ts";
import type { BlockAsk, CallLease, EndedHeldCall, GrantedBlock, Place } from "./rpc.ts";
import { servedTo } from "./served.ts";
import type { FleetState } from "./state.ts";
import type { Weights } from "./weights.ts";

type Waits = Extract<CallLease, { kind: "wait" }>;

/** The parts of the fleet object that a renewal needs. */
export interface GrantingDesk {
  readonly now: number;
  readonly blocks: Blocks;
  readonly numbers: Numbers;
  readonly state: () => FleetState;
  /** Places of a replica that are given out. */
  readonly taken: (replica: string) => number;
  /** Notes the end of a call. Returns null if no version may be assigned to it. */
  readonly ended: (one: EndedHeldCall, weights: Weights | null) => number | null;
  readonly waits: (choice: Extract<Choice, { kind: "wait" }>) => Waits;
}

/** Numbers for calls that begin before the next renewal: more if many began before the last one. */
const NUMBERS_LEAST = 32;

export function renewBlock(ask: BlockAsk, desk: GrantingDesk): GrantedBlock {
  const { now, blocks, numbers } = desk;
  const unknown = ask.ended.filter((one) => desk.ended(one, weightsFor(ask, one)) === null);
  // Taken now, so it is after the ends of all these calls.
  const end = numbers.next();
  blocks.put(ask, now);
  const idle = ask.idle.filter((replica) => placeAt(replica, ask, desk) !== null);
  let calls = ask.calls;
  let isFull = false;
  const granted = ask.wants.map((want): GrantedBlock["granted"][number] => {
    const choice = choose(desk.state(), { ...ask, ...want }, desk.taken);
    if (choice.kind === "wait") {
      isFull ||= choice.busy === true;
      return desk.waits(choice);
    }
    const { replica, served } = choice;
    calls = [...calls, { replica_id: replica.id, left_ms: want.wait_ms }];
    blocks.put({ ...ask, calls, idle }, now);
    return { kind: "go", replica_id: replica.id, ...served };
  });
  blocks.put({ ...ask, calls, idle }, now);
  const { everyMs: every_ms } = blocks;
  const count = NUMBERS_LEAST + 2 * ask.ended.length + calls.length;
  return {
    ...{ kind: "block", end, unknown: unknown.map(({ number }) => number), granted, every_ms },
    numbers: { from: numbers.take(count), count },
    again: [...new Set([...calls.map((call) => call.replica_id), ...idle])].flatMap((replica) => {
      return placeAt(replica, ask, desk) ?? [];
    }),
    fresh_ms: freshMs(every_ms),
    full: blocks.isFull(now, isFull),
  };
}

/** The weights that must have sampled a call. */
function weightsFor({ run_id, weights_of }: BlockAsk, { version, generation = 0 }: EndedHeldCall): Weights | null {
  return version === null ? null : { run_id: weights_of ?? run_id, generation, version };
}

/** What other calls of the kind get at the replica; null if it takes no new ones, or has more than it may have. */
function placeAt(replica_id: string, ask: BlockAsk, { state, taken }: GrantingDesk): Place | null {
  const replica = state().replicas[replica_id];
  if (replica === undefined || replica.shown !== "ready" || taken(replica_id) > replica.max_concurrent) return null;
  const served = servedTo(state(), replica, ask);
  return served === null ? null : { replica_id, ...served };
}
