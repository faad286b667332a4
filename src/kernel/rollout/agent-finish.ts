/** The end that an agent reports for its rollout, and the end of a rollout that its agent did not end. */
import type { Rollout } from "../../core/rollout/rollout.ts";

/** How a rollout ended without its agent, for people. `rollout` null: it has nothing stored. */
export function describeEnd(rollout: Pick<Rollout, "cancelled" | "failure" | "stop_condition"> | null): string {
  if (rollout === null) return "it never began";
  const { cancelled, failure, stop_condition } = rollout;
  if (cancelled !== null) return `cancelled: ${cancelled}`;
  return failure === null ? `stopped: ${stop_condition}` : `failed: ${failure}`;
}
