/**
 * Runs one rollout in this process, for the tests of an environment: without platform and network, with a scripted
 * model. The loop is the platform's own, in play.ts.
 */
import type { AnyEnvironment } from "./environments/any-environment.ts";
import type { OwnCapabilities } from "./protocol/in-process.ts";
import { codeOf } from "./protocol/in-process.ts";
import { type PlayOptions, playTask, type Reply, type RolloutReport, type TestModel } from "./rollout/play.ts";
import { RowError } from "./rollout/task.ts";

export { tearDown } from "./environments/any-environment.ts";
export type { ModelRequest, Reply, RolloutReport, TestModel } from "./rollout/play.ts";
export {
  type ScoredMember,
  type ScoredState,
  type StateToScore,
  scoreGroup,
  scoreState,
} from "./rubrics/score-states.ts";

export interface RolloutOptions extends Omit<PlayOptions, "secondInstance" | "now" | "timer" | "answer"> {
  /** The platform's capabilities; the environment gets those it declares. `now` is epoch milliseconds; 0 by default. */
  readonly capabilities?: OwnCapabilities;
  /** One row of the environment's dataset, before its schema parses it. */
  readonly task: unknown;
}

/** A model that gives these replies, one per call. Throws, and so fails the test, if it is called once more. */
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

/** Throws if the task does not match the dataset's schema, or the model throws; all other errors are in the report. */
export async function runRollout(
  environment: AnyEnvironment,
  { task: row, capabilities = {}, ...options }: RolloutOptions,
): Promise<RolloutReport> {
  const code = codeOf(environment, capabilities);
  const made = await code.task({ kind: "brought", training: true, index: 0, row });
  if ("fault" in made) throw new RowError(made.fault.index, made.fault.column, made.fault.message);
  return playTask(code, made, { ...options, ...(capabilities.now && { now: capabilities.now }) });
}
