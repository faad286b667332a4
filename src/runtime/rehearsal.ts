/**
 * What runs of an environment outside of its hooks, done once and thrown away: it is built, the task is made, the row finds
 * its environment, the tools are listed. For a suspect, before it goes on where one of these may end the process again.
 */
import { toolDefinitions } from "../core/harness.ts";
import { newRollout, type Rollout } from "../core/rollout.ts";
import { buildTask } from "../core/task.ts";
import { pinnedEnvironment } from "./environments.ts";
import type { RolloutSpec } from "./wire.ts";

/** What it meets it gives: the same is met again where it matters, and dealt with there. */
export async function rehearse(spec: RolloutSpec, stored: Rollout | null): Promise<unknown> {
  try {
    const environment = await pinnedEnvironment(spec.environment, spec.environment_args);
    if (environment === null) return null;
    const { rollout_id: id, task_key, row, example_id } = spec;
    const task = { id, task_key, ...buildTask(environment, row, example_id) };
    return toolDefinitions(environment, stored ?? newRollout(task, 0));
  } catch (thrown) {
    return thrown;
  }
}
