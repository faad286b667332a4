/** The end that an agent reports for its rollout, and the end of a rollout that its agent did not end. */
import { LIMITS } from "../../contract/limits.ts";
import { formatPath } from "../../core/field-path.ts";
import type { EnvironmentDescription } from "../../core/protocol/environment-code.ts";
import type { Rollout } from "../../core/rollout/rollout.ts";
import { exceedsUtf8 } from "../../core/size.ts";
import type { AgentFinish, RefusedFinish } from "../messages/agent-wire.ts";

/**
 * Why the rollout cannot end like this: it would be unscored, or fail. Null if it can. `rubric`: the scores of the
 * environment.
 */
export function refusalOfFinish(
  { error, reported, state }: AgentFinish,
  rollout: Pick<Rollout, "state">,
  rubric: EnvironmentDescription["scores"],
): RefusedFinish | null {
  if (error !== null) return null;
  const own = new Set(rubric.map(({ name }) => name));
  const taken = Object.keys(reported?.rewards ?? {}).find((name) => own.has(name));
  if (taken !== undefined) {
    const message = "the rubric of the environment has a score of this name: use another";
    return { field: formatPath(["rewards", taken]), message };
  }
  if (!exceedsUtf8(JSON.stringify({ ...rollout.state, ...state }), LIMITS.stateBytes)) return null;
  const message = `together with the state of the environment it is more than ${LIMITS.stateBytes} bytes as JSON, the maximum`;
  return { field: "state", message };
}

/** How a rollout ended without its agent, for people. `rollout` null: it has nothing stored. */
export function describeEnd(rollout: Pick<Rollout, "cancelled" | "failure" | "stop_condition"> | null): string {
  if (rollout === null) return "it never began";
  const { cancelled, failure, stop_condition } = rollout;
  if (cancelled !== null) return `cancelled: ${cancelled}`;
  return failure === null ? `stopped: ${stop_condition}` : `failed: ${failure}`;
}
