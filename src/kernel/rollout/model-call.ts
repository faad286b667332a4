/**
 * The model is called by the object that plays the rollout, inside its alarm: a kill that loses the call is found at once
 * by the alarm that is repeated, and what the rollouts of an object wait side by side is billed once.
 *
 * Invariants. `leave` makes the intent durable and is called right before the call leaves; a call that could not leave was
 * none. Retries are not decided here, but in call-outcome.ts.
 */

import { cacheSalt, mergeSampling, type Sampling, trainingSampling, withCallSeed } from "../../contract/sampling.ts";
import type { CallSize } from "../../core/costs/allowance.ts";
import type { AnyEnvironment } from "../../core/environments/any-environment.ts";
import { offeredTools } from "../../core/rollout/harness.ts";
import { outstandingPrompt, type Rollout } from "../../core/rollout/rollout.ts";
import { sizeOfCall } from "../clients/call-size.ts";
import { callEndpoint, type OpenEndpoint } from "../endpoint/call.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { unlessAborted } from "../kit/turns.ts";
import type { CalledBy, Held, Reach, TurnCall, TurnOutcome, Unasked } from "../messages/endpoint-wire.ts";
import type { RolloutSpec } from "../messages/wire.ts";
import { askedTools } from "../run/training/asked-tools.ts";

export interface Departure {
  /** The rollout that calls. */
  readonly from: Rollout;
  /** Milliseconds the answer is waited for. */
  readonly waitMs: number;
  /** Milliseconds until the rollout's own deadline, when it is asked; infinity without one. */
  readonly latestMs: () => number;
  /** Writes that the call leaves. */
  readonly leave: () => void;
  /** False once a call that has waited must not leave any more. */
  readonly mayLeave: () => boolean;
}

/**
 * Calls the model for the outstanding turn. `later`: it waited for a connection until it might not leave any more. Once
 * nobody waits for the call any more, `controller` is aborted.
 */
export type CallModel = (
  departure: Departure,
  controller: AbortController,
) => Promise<TurnOutcome | Unasked | Held | { readonly kind: "later" }>;

export function endpointReach(open: OpenEndpoint): Reach {
  return ({ call, waitMs, controller }) => callEndpoint({ open, call: () => call(), waitMs, controller });
}

/** As much of a rollout's spec as its calls depend on. */
type Calling = Pick<RolloutSpec, "run_id" | "rollout_id" | "model" | "sampling"> &
  Pick<RolloutSpec, "group" | "slot" | "attempt"> &
  Pick<RolloutSpec, "policy_version" | "policy_generation">;

/** What the model is asked for the rollout's outstanding turn. `by`: of a run on a fleet. */
export function turnCall(
  spec: Calling,
  rollout: Rollout,
  environment: AnyEnvironment,
  by?: CalledBy,
): TurnCall | Unasked {
  const tools = offeredTools(environment, rollout);
  if ("error" in tools) return { kind: "unasked", error: tools };
  const { sampling, maxSeqLen } = environment.route(rollout).environment;
  return {
    model: by?.model ?? spec.model,
    messages: outstandingPrompt(rollout),
    tools: askedTools(spec, tools),
    sampling: withCallSeed(askedSampling(spec, sampling, by), { ...spec, turn: rollout.turns.length }),
    ...(maxSeqLen !== null && { max_seq_len: maxSeqLen }),
    idempotency_key: `${spec.rollout_id}:${rollout.turns.length}`,
  };
}

/**
 * All turns of a rollout have the salt of the version it was dispatched by, also those that later weights sample; on a fleet,
 * which knows what each of its replicas serves, that of the weights that sample.
 */
function askedSampling(
  { run_id, policy_version, policy_generation = 0, sampling: run }: Calling,
  environment: Sampling,
  by: CalledBy | undefined,
): Sampling {
  if (policy_version === undefined) return mergeSampling(environment, run);
  const version = by?.version ?? policy_version;
  const generation = by?.generation ?? policy_generation;
  return trainingSampling(environment, run, cacheSalt({ run_id, generation, version }));
}

/** What the rollout's outstanding call can take at most; null where no call will leave. */
export function callSizer(spec: Calling, environment: AnyEnvironment): (rollout: Rollout) => CallSize | null {
  return (rollout) => {
    const call = turnCall(spec, rollout, environment);
    return "kind" in call ? null : sizeOfCall(call);
  };
}

/** A longer timer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The time of a call begins when a connection of the object (`calls`) is free for it. `turn`: resolves when its request may
 * be made; null: at once.
 */
export function modelCaller(
  spec: RolloutSpec,
  environment: AnyEnvironment,
  reach: Reach,
  calls: Subrequests,
  turn: () => Promise<void> | null,
): CallModel {
  return async ({ from, waitMs, latestMs, leave, mayLeave }, controller) => {
    const { signal } = controller;
    const asked = turnCall(spec, from, environment);
    if ("kind" in asked) return asked;
    const call = (by?: CalledBy) => {
      leave();
      const made = by === undefined ? asked : turnCall(spec, from, environment, by);
      return "kind" in made ? asked : made;
    };
    const largeTurn = turn();
    let waited = largeTurn !== null;
    if (largeTurn !== null) await largeTurn;
    try {
      return await calls.inTurn(
        async () => {
          if (waited && !mayLeave()) return { kind: "later" };
          return await reach({ from, call, controller, waitMs: Math.min(waitMs, latestMs()) });
        },
        async (wait) => {
          waited = true;
          const late = setTimeout(() => controller.abort(), Math.min(LONGEST_TIMER_MS, Math.max(0, latestMs())));
          try {
            await unlessAborted(wait, signal);
          } finally {
            clearTimeout(late);
          }
        },
      );
    } catch (thrown) {
      if (signal.aborted && thrown === signal.reason) return { kind: "aborted" };
      throw thrown;
    }
  };
}
