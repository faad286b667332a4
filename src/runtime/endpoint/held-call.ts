/**
 * What a rollout does before it tries a failed call again: it asks the endpoint's object whether the endpoint is down,
 * and waits for it if so. One question a try; a call that does not fail asks nothing.
 *
 * Invariants. Waiting spends none of the tries that `max_retries` counts. A call waits `LIMITS.endpointWaitMs` in all,
 * however often; then it goes on with the tries it has left.
 */
import { LIMITS } from "../../contract/limits.ts";
import { seededRandom } from "../../contract/random.ts";
import { advance, isAway, type Rollout } from "../../core/rollout/rollout.ts";
import type { RolloutSpec } from "../contract/wire.ts";
import { logError } from "../kit/log.ts";
import { endpointObject } from "../kit/names.ts";

/** The rollout as it is, or waiting. */
export type HoldCall = (rollout: Rollout) => Promise<Rollout>;

/** Those that waited do not all come back at once. */
const SPREAD_MS = 1000;
const TOO_MANY_REQUESTS = 429;

export function callHolder(env: Env, spec: RolloutSpec, now: () => number): HoldCall {
  const { scope, endpoint_id, rollout_id, model } = spec;
  return async (rollout) => {
    const { intent } = rollout;
    if (intent === null || intent.failures === 0 || isAway(rollout)) return rollout;
    if (now() >= (intent.held_until ?? Number.POSITIVE_INFINITY)) return rollout;
    // An endpoint that replies 429 is there, and its calls are paced by other means.
    const limited = rollout.failed_calls.at(-1)?.status === TOO_MANY_REQUESTS;
    try {
      const endpoint = endpointObject(env, scope, endpoint_id);
      const { again_at } = await endpoint.failing({ rollout_id, model, limited });
      if (again_at === null) return rollout;
      const until = now() + LIMITS.endpointWaitMs;
      return advance(rollout, { type: "held", not_before: again_at + spread(rollout_id), until });
    } catch (thrown) {
      // Nobody knows: it is tried as it would be with the endpoint up.
      logError("endpoint does not answer", endpoint_id, thrown);
      return rollout;
    }
  };
}

function spread(rolloutId: string): number {
  return Math.round(SPREAD_MS * seededRandom("held", rolloutId)());
}
