/** What D1 says of a run, held to the run's own rows: one row each once drained, with what the rollout ended with. */
import { type AuditViolation, differences, flatCounts } from "../../contract/audit.ts";
import type { Scope } from "../../contract/scope.ts";
import { type AuditedRollout, rolloutsById } from "../../db/rollouts.ts";
import { getRun } from "../../db/runs.ts";
import type { RunRpc } from "../contract/rpc.ts";
import type { AuditRow, RunRecords } from "../contract/run-records.ts";
import type { Subrequests } from "../kit/subrequests.ts";

interface Audited {
  readonly id: string;
  readonly run: RunRpc;
  readonly records: RunRecords;
  /** Rows of the run that D1 counts. */
  readonly rows: number;
}

export async function auditDatabase(
  env: Env,
  scope: Scope,
  audited: Audited,
  subrequests: Subrequests,
): Promise<AuditViolation[]> {
  const broken: AuditViolation[] = [];
  let found = 0;
  for (let after = 0; ; ) {
    const rows = await subrequests.object(() => audited.run.auditRows(after));
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.finish_seq;
    const ids = rows.map(({ id }) => id);
    const stored = await subrequests.fetch(() => rolloutsById(env.DB, scope, ids));
    found += stored.length;
    const byId = new Map(stored.map((row) => [row.id, row]));
    broken.push(...rows.flatMap((row) => auditRow(row, byId.get(row.id))));
  }
  if (audited.rows > found) {
    const detail = `${audited.rows - found} rows of the run are of rollouts it does not know`;
    broken.push({ rule: "d1_has_no_other_row", detail });
  }
  return [...broken, ...(await auditRunRow(env, scope, audited, subrequests))];
}

function auditRow(row: AuditRow, stored: AuditedRollout | undefined): AuditViolation[] {
  if (stored === undefined) {
    if (row.drained === 0) return [];
    return [{ rule: "d1_has_every_row", detail: `${row.id} was written and is not there` }];
  }
  const differ = differences(ended(stored), ended(row));
  // The other way round a later attempt came while we looked.
  if (row.drained === 1 && row.superseded_by !== null) {
    const { superseded_by } = row;
    differ.push(...differences({ superseded_by: stored.superseded_by }, { superseded_by }));
  }
  return differ.map((detail) => ({ rule: "d1_row_matches", detail: `${row.id} ${detail}` }));
}

/** How it ended. Rewards pass through JSON on their way to D1. */
function ended(row: AuditRow | AuditedRollout): Record<string, unknown> {
  const { outcome, reason, turns, calls, prompt_tokens, completion_tokens, digest } = row;
  const { judge_calls, judge_prompt_tokens, judge_completion_tokens, judge_micros } = row;
  const reward = row.reward?.toPrecision(12) ?? null;
  const judges = { judge_calls, judge_prompt_tokens, judge_completion_tokens, judge_micros };
  const policy = { turns, calls, prompt_tokens, completion_tokens };
  return { outcome, reason, ...policy, ...judges, digest, reward };
}

/** The run's own row, once nothing more will change it. */
async function auditRunRow(
  env: Env,
  scope: Scope,
  { id, records }: Audited,
  subrequests: Subrequests,
): Promise<AuditViolation[]> {
  const { settled, row_current, status, counters } = records;
  if (!settled || !row_current) return [];
  const stored = (await subrequests.fetch(() => getRun(env.DB, scope, id)))?.run;
  const there = { status: stored?.status, ...(stored?.counts && flatCounts(stored.counts)) };
  const here = { status, ...flatCounts(counters) };
  return differences(there, here).map((detail) => ({ rule: "d1_run_matches", detail }));
}
