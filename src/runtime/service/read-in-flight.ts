/** Rollouts of a run that have not ended, from the run's own rows: none of them is asked. */
import type { RolloutInFlight } from "../../contract/run.ts";
import type { Scope } from "../../contract/scope.ts";
import { type Result, refuse } from "../contract/refusal.ts";
import type { InFlightQuery } from "../contract/run-records.ts";
import { lostRun, openRun, placeOfId } from "./read-run.ts";

export async function readInFlight(
  env: Env,
  scope: Scope,
  runId: string,
  { after, ...page }: Omit<InFlightQuery, "after"> & { readonly after: string | null },
): Promise<Result<RolloutInFlight[]>> {
  const found = await openRun(env, scope, runId);
  if (!found.ok) return found;
  const place = after === null ? null : placeOfId(env, after);
  if (after !== null && place?.runId !== runId) {
    return refuse("invalid_request", "after: is not the id of a rollout of this run", "after");
  }
  const entries = await found.value.object.inFlight({ ...page, after: place });
  if (entries === null) return lostRun(runId);
  const value = entries.map((entry) => {
    return { object: "rollout_in_flight" as const, run_id: runId, ...entry };
  });
  return { ok: true, value };
}
