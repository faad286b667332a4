/**
 * Runs one rollout in this process, for the tests of an environment: no platform, no network, no model but a script.
 * The loop is the platform's own, in play.ts.
 */
import type { AnyEnvironment } from "./environments/any-environment.ts";
import { type PlayOptions, playTask, type Reply, type RolloutReport, type TestModel } from "./rollout/play.ts";
import { buildTask, parseRow } from "./rollout/task.ts";

export { tearDown } from "./environments/any-environment.ts";
export type { ModelRequest, Reply, RolloutReport, TestModel } from "./rollout/play.ts";
export {
  type ScoredMember,
  type ScoredState,
  type StateToScore,
  scoreGroup,
  scoreState,
} from "./rubrics/score-states.ts";

export interface RolloutOptions extends Omit<PlayOptions, "secondInstance"> {
  /** One row of the environment's dataset, before its schema has read it. */
  readonly task: unknown;
}

/**
 * A model that gives these replies, one a call. Throws, and so fails the test, when it is called once more.
 */
export function scripted(replies: readonly Reply[]): TestModel {
  let calls = 0;
  return () => {
    const reply = replies[calls];
    calls += 1;
    if (reply === undefined) {
      throw new Error(`the model was called ${calls} times, but ${replies.length} replies are scripted`);
    }
    return reply;
  };
}

/** Throws when the task does not fit the dataset's schema, or the model throws; anything else is in the report. */
export async function runRollout(environment: AnyEnvironment, options: RolloutOptions): Promise<RolloutReport> {
  const row = parseRow(environment.dataset, options.task, 0);
  return playTask(environment, buildTask(environment, row, 0), options);
}
