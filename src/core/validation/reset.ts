/**
 * Whether a row and the state a rollout of it begins with are the same when they are made a second time, by a second copy
 * of the environment: what was drawn while the first was loaded or built is then drawn again.
 */

import type { JsonObject } from "../../contract/json.ts";
import type { AnyEnvironment } from "../environments/any-environment.ts";
import { NO_JOURNAL, RolloutSql } from "../environments/rollout-sql.ts";
import { openHarness } from "../rollout/harness.ts";
import { newRollout } from "../rollout/rollout.ts";
import { RowError } from "../rollout/task.ts";
import { databaseOf } from "../sql/sqlite-handle.ts";
import { firstDifference } from "./difference.ts";
import type { Stage } from "./plays.ts";
import { type Example, readExample, SEED } from "./rows.ts";

/** What differs, by example. A setup that fails is not judged here: its rollouts say so. */
export async function unsteadyResets(
  stage: Stage,
  examples: readonly Example[],
  uploaded: readonly unknown[],
): Promise<string[]> {
  const made = (environment: AnyEnvironment) => () =>
    Promise.all(examples.map((example) => reset({ ...stage, environment }, example, uploaded)));
  const first = await made(stage.environment)();
  const second = await stage.later(made(stage.twin));
  return examples.flatMap(({ index }, at) => {
    const found = firstDifference(first[at] ?? null, second[at] ?? null, "");
    return found === null ? [] : [`row ${index}: ${found.slice(1)}`];
  });
}

async function reset(stage: Stage, { index }: Example, uploaded: readonly unknown[]): Promise<JsonObject> {
  try {
    const example = readExample(stage.environment, index, uploaded);
    return { row: example.task.task, state: await stateAfterSetup(stage, example) };
  } catch (thrown) {
    // The copies may have different numbers of rows.
    if (!(thrown instanceof RowError || thrown instanceof RangeError)) throw thrown;
    // A row that is refused only sometimes differs by that.
    return { row: thrown.message, state: null };
  }
}

async function stateAfterSetup(
  { environment, capabilities, openSqlite }: Stage,
  { task }: Example,
): Promise<JsonObject | null> {
  const rollout = newRollout({ ...task, id: "rollout", task_key: "task" }, 0);
  const harness = openHarness(environment, rollout, {
    rolloutId: "rollout",
    seed: SEED,
    capabilities: { now: () => 0, ...capabilities },
    sql: openSqlite && new RolloutSql(databaseOf(openSqlite()), NO_JOURNAL),
  });
  const event = await harness.perform({ kind: "setup" }, rollout);
  return event.type === "set_up" ? event.state : null;
}
