/** Makes tasks by an environment's code, and finds which environment of a group plays one. */
import type { EnvironmentCode, MadeTask, PlayerDescription, TaskSource } from "../../core/protocol/environment-code.ts";
import { RowError } from "../../core/rollout/task.ts";
import type { RolloutSpec } from "../messages/wire.ts";

/** Throws `RowError` if the row makes no task. */
export async function makeTask(environment: EnvironmentCode, source: TaskSource): Promise<MadeTask> {
  const reply = await environment.task(source);
  if (!("fault" in reply)) return reply;
  const { index, column, message } = reply.fault;
  throw new RowError(index, column, message);
}

/** The environment that plays the row of a rollout. Throws `RowError` if there is none. */
export async function playerOf(
  environment: EnvironmentCode,
  { row, example_id, member }: Pick<RolloutSpec, "row" | "example_id" | "member">,
): Promise<PlayerDescription> {
  const { players } = environment.description;
  const isAlone = players.every((player) => player.member === null);
  const named = isAlone
    ? null
    : (member ?? (await makeTask(environment, { kind: "parsed", index: example_id, row })).member);
  const found = players.find((player) => player.member === named);
  if (found === undefined) throw new RowError(example_id, ".info.env_id", `no environment ${named}`);
  return found;
}
