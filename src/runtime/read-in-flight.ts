/** Rollouts of a run that have not ended, from the run's own rows: none of them is asked. */
import type { RolloutInFlight } from "../core/run.ts";
import type { Scope } from "../core/scope.ts";
import { lostRun, openRun, placeOfId } from "./read-run.ts";
import { type Result, refuse } from "./refusal.ts";
import { cancelReasonOf } from "./run-control.ts";
import type { RunHead, RunningRow } from "./run-schema.ts";
import type { RunStore } from "./run-store.ts";
import type { Place } from "./wire.ts";

/** Which of them; `after` is the place of the last one seen. */
export interface InFlightQuery {
  readonly status: RolloutInFlight["status"] | null;
  readonly after: Place | null;
  readonly limit: number;
}

export type InFlightEntry = Omit<RolloutInFlight, "object" | "run_id">;

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

export function inFlightIn(
  store: RunStore,
  { status, after, limit }: InFlightQuery,
): InFlightEntry[] {
  const seen = after === null ? 0 : (store.rollout(after)?.seq ?? 0);
  const head = store.head();
  return store.inFlight(seen, limit, status).map((row) => entryOf(row, head));
}

function entryOf(row: RunningRow, head: RunHead): InFlightEntry {
  const { id, group_index: group, slot, attempt, status, turns, started_at } = row;
  return {
    ...{ id, group, slot, attempt, status },
    cancelling: cancelReasonOf(head, row) !== null,
    turns: status === "running" ? null : turns,
    started_at: started_at === null ? null : Math.floor(started_at / 1000),
  };
}
