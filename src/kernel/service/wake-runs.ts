/**
 * Wakes unfinished runs that have been silent for long, once a minute. A run works by its object's alarms, and a run
 * whose alarm was lost would wait for the next call about it. A run that was accepted while the process ended has no
 * object yet: it gets one here. A run whose object was lost ends here, as it does for a reader.
 */
import { databaseOf } from "../db/database.ts";
import { takeSilentRuns } from "../db/runs.ts";
import { idsOf, logError } from "../kit/log.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { openRun, readRun } from "./read-run.ts";

const SILENT_MS = 5 * 60_000;
/** Runs in one pass. If there are more, the next minute's pass continues with those that were silent for longest. */
const RUNS_AT_ONCE = 100;

/** `now`: epoch milliseconds. Returns how many runs were woken. Throws only if the database does not answer. */
export async function wakeRuns(env: Env, now: number): Promise<number> {
  const subrequests = new Subrequests();
  const silent = await subrequests.fetch(() =>
    takeSilentRuns(databaseOf(env), { now, before: now - SILENT_MS, limit: RUNS_AT_ONCE }),
  );
  const woken = await subrequests.fetchAll(silent, async ({ id, scope }) => {
    try {
      const found = await openRun(env, scope, id);
      if (!found.ok) return false;
      await found.value.object.wake();
      await readRun(env, scope, id);
      return true;
    } catch (thrown) {
      logError("a silent run could not be woken", idsOf({ scope, run_id: id }), thrown);
      return false;
    }
  });
  return woken.filter(Boolean).length;
}
