/** Deletes everything in R2 under a prefix: 1,000 keys per slice, counted before they are deleted. */
import { LIMITS } from "../contract/limits.ts";
import { goOn, type Outcome, type Slice } from "./job-slice.ts";
import { type Job, plus } from "./jobs.ts";

/** `then`: the step that follows when nothing is left. */
export async function filesSlice(slice: Slice, job: Job, prefix: string, then: string): Promise<Outcome> {
  const { STORE } = slice.env;
  const drop = (keys: readonly string[]) => slice.subrequests.fetch(() => STORE.delete([...keys]));
  // These were counted by a slice that was interrupted.
  if (job.leaving.length > 0) await drop(job.leaving);
  const { objects } = await slice.subrequests.fetch(() => STORE.list({ prefix, limit: LIMITS.sliceRows }));
  if (objects.length === 0) return goOn({ ...job, leaving: [], step: then });
  const bytes = objects.reduce((sum, { size }) => sum + size, 0);
  const counts = plus(job.counts, { files: objects.length, bytes });
  const leaving = objects.map(({ key }) => key);
  slice.jobs.save(job.id, { ...job, counts, leaving }, slice.now);
  await drop(leaving);
  return goOn({ ...job, counts, leaving: [] });
}
