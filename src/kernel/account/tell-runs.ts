/** Notifies runs that they would be granted something else now. The alarm repeats it for runs that were not reached. */
import { logError } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";

export interface NotifiedRun {
  readonly run_id: string;
  readonly org_id: string;
  readonly project_id: string;
}

/** At most `LIMITS.sliceObjects` of them. Never throws. */
export async function notifyRuns(env: Env, runs: readonly NotifiedRun[]): Promise<void> {
  await new Subrequests().objectAll(runs, async ({ run_id, org_id, project_id }) => {
    try {
      await runObject(env, { orgId: org_id, projectId: project_id }, run_id).endpointChanged("account");
    } catch (thrown) {
      logError("run does not answer", { org_id, project_id, run_id }, thrown);
    }
  });
}
