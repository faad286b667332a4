/** Another token for a run's trainer. */
import type { Scope } from "../../contract/scope.ts";
import type { TrainerSecrets } from "../../contract/training-view.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import { issueToken } from "./issue-trainer.ts";
import { openRun } from "./read-run.ts";

/** For whoever lost the run's token. What offers are signed by stays, and is not shown again. */
export async function rotateTrainerToken(
  env: Env,
  scope: Scope,
  id: string,
  now: number,
): Promise<Result<TrainerSecrets>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  if (found.value.record.run.kind !== "training") {
    return refuse("not_found", `${id} is no training run`, "id");
  }
  return { ok: true, value: { token: await issueToken(env, scope, id, now), push_secret: null } };
}
