/**
 * The audit of a run: counters and rows from its object, the projection in D1, the objects in R2, compared.
 *
 * Rows are compared 1,000 at a time: a run of 100,000 rollouts takes 100 calls of its object, 100 queries and two lists
 * of keys, and holds one slice in memory. Nothing is stopped meanwhile. What was on its way while we looked is no
 * violation: where something differs everything is looked at once more, and only what is broken both times counts.
 */
import {
  type AuditRule,
  type AuditViolation,
  brokenLaw,
  differences,
  flatCounts,
  type RunAudit,
} from "../../contract/audit.ts";
import type { Scope } from "../../contract/scope.ts";
import { type AuditedRollout, countRollouts, rolloutsById } from "../../db/rollouts.ts";
import { getRun, type RunRecord, runViewOf } from "../../db/runs.ts";
import type { Result } from "../contract/refusal.ts";
import type { RunRpc } from "../contract/rpc.ts";
import type { AuditRow, RunRecords } from "../contract/run-records.ts";
import { batchKeys, sampleKey, segmentKey, trajectoryKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { damagedMessage, failedForStorage, goneMessage, isUnreadable } from "../kit/storage-faults.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { openRun } from "./read-run.ts";

interface ObjectAudit {
  readonly counted: RunAudit["sources"]["r2"];
  readonly notes: string[];
  readonly violations: AuditViolation[];
}

interface Audited {
  readonly id: string;
  readonly run: RunRpc;
  readonly records: RunRecords;
  /** Rows of the run that D1 counts. */
  readonly rows: number;
}

/** A look of a run of a million rollouts; production stops at 10,000 an invocation. */
const SUBREQUESTS = 4500;
/** Violations of one rule that are told one by one. */
const TOLD = 10;

/** `now`: epoch milliseconds. */
export async function auditRun(env: Env, scope: Scope, id: string, now: number): Promise<Result<RunAudit>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { record, object } = found.value;
  const absent = await absence(env, id, object);
  if (absent !== null) return { ok: true, value: await auditWithout(env, scope, record, absent, now) };
  const first = await look(env, scope, id, object, now);
  if (first.violations.length === 0) return { ok: true, value: auditOf(id, now, first) };
  const broken = new Set(first.violations.map(({ rule }) => rule));
  const again = await look(env, scope, id, object, now);
  const violations = again.violations.filter(({ rule }) => broken.has(rule));
  return { ok: true, value: auditOf(id, now, { ...again, violations }) };
}

/** What is wrong where the run's object has nothing to compare; null where it answers. */
async function absence(env: Env, id: string, object: RunRpc): Promise<string | null> {
  try {
    return (await object.view()) === null ? goneMessage(id) : null;
  } catch (thrown) {
    if (!isUnreadable(thrown) || (await failedForStorage(env, thrown))) throw thrown;
    return damagedMessage(id);
  }
}

/** The counts are those that D1 was told last; what the object counted nobody knows. */
async function auditWithout(env: Env, scope: Scope, record: RunRecord, detail: string, now: number): Promise<RunAudit> {
  const { id, counts } = runViewOf(record);
  const d1 = await countRollouts(env.DB, scope, id);
  const sources = {
    counters: UNCOUNTED,
    run_rows: UNCOUNTED,
    d1: { ...d1, drained_to: 0 },
    r2: { segments: 0, rollouts: 0, trajectories: 0 },
  };
  const violations = [violation("object_missing", detail)];
  const audit = auditOf(id, now, { sources, notes: [], violations });
  return { ...audit, counts };
}

const NONE = { planned: 0, pending: 0, dispatched: 0, in_flight: 0, scored: 0 };
const UNCOUNTED = { ...NONE, unscored: {}, failed: {}, cancelled: {} };

type Look = Pick<RunAudit, "sources" | "notes" | "violations">;

async function look(env: Env, scope: Scope, id: string, run: RunRpc, now: number): Promise<Look> {
  const subrequests = new Subrequests(SUBREQUESTS);
  const records = await subrequests.object(() => run.auditRecords());
  if (records === null) throw new Error(`run ${id} has no object`);
  // Counted before the run's rows are read: whatever is in D1 by now, the run knows.
  const d1 = await subrequests.fetch(() => countRollouts(env.DB, scope, id));
  const inDatabase = await auditDatabase(env, scope, { id, run, records, rows: d1.rows }, subrequests);
  const inStore = await auditObjects(env, scope, id, records, subrequests);
  const { counters, run_rows, tallies } = records;
  return {
    sources: {
      counters,
      run_rows,
      d1: { ...d1, drained_to: tallies.counters.drained },
      r2: inStore.counted,
    },
    notes: [...deadLetters(tallies.counters.dead_letters), ...inStore.notes],
    violations: [...auditRecords(records), ...findOverdue(records, now), ...inDatabase, ...inStore.violations],
  };
}

/** What the run's own two records say of each other. */
function auditRecords(records: RunRecords): AuditViolation[] {
  const { counters, run_rows, tallies, last_end, doubled_slots, training } = records;
  const pairs = [
    ...differences(flatCounts(counters), flatCounts(run_rows)),
    ...differences({ ...tallies.counters }, { ...tallies.run_rows }),
    ...(training === null ? [] : differences(training.counters, training.run_rows)),
  ];
  const ends = tallies.run_rows.finished;
  return [
    ...brokenLaw(counters),
    ...brokenLaw(run_rows),
    ...pairs.map((detail) => violation("counters_match_rows", `${detail} in the rows`)),
    ...(last_end === ends ? [] : [violation("ends_are_numbered", `the last end is number ${last_end}, of ${ends}`)]),
    ...(doubled_slots === 0
      ? []
      : [violation("one_attempt_counts", `in ${doubled_slots} slots none counts, or more than one`)]),
    ...gaps(records),
  ];
}

/** A cancelled run ends, whatever its rollouts do. */
function findOverdue({ draining, counters }: RunRecords, now: number): AuditViolation[] {
  if (draining === undefined || now < draining.ends_by) return [];
  const since = new Date(draining.ends_by).toISOString();
  const waits = `${counters.in_flight} rollouts are in flight, ${draining.rollouts.join(", ")} first`;
  const detail = `it was cancelled and should have ended by ${since}: ${waits}`;
  return [violation("ends_in_time", detail)];
}

/** Segments cover the ends without gaps, one after the other. */
function gaps({ segments, segmented }: RunRecords): AuditViolation[] {
  const broken: AuditViolation[] = [];
  let covered = 0;
  for (const { first_seq, last_seq } of segments) {
    if (first_seq !== covered + 1) {
      broken.push(violation("segments_cover_ends", `after end ${covered} a segment begins at ${first_seq}`));
    }
    covered = last_seq;
  }
  if (covered === segmented) return broken;
  const detail = `they reach end ${covered}, and the run counts ${segmented}`;
  return [...broken, violation("segments_cover_ends", detail)];
}

function auditOf(run_id: string, now: number, { sources, notes, violations }: Look): RunAudit {
  return {
    object: "audit",
    run_id,
    holds: violations.length === 0,
    as_of: Math.floor(now / 1000),
    counts: sources.counters,
    sources,
    notes,
    violations: cut(violations),
  };
}

/** Each rule's first violations, and how many more there are. */
function cut(violations: readonly AuditViolation[]): AuditViolation[] {
  const byRule = Object.groupBy(violations, ({ rule }) => rule);
  return Object.values(byRule).flatMap((broken) => {
    const [first] = broken;
    if (first === undefined || broken.length <= TOLD) return broken;
    const more = violation(first.rule, `and ${broken.length - TOLD} more`);
    return [...broken.slice(0, TOLD), more];
  });
}

function deadLetters(count: number): string[] {
  if (count === 0) return [];
  return [`${count} messages ended in a dead-letter queue; the sweep does what they asked for`];
}

function violation(rule: AuditRule, detail: string): AuditViolation {
  return { rule, detail };
}

/** What D1 says of a run, held to the run's own rows: one row each once drained, with what the rollout ended with. */
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
  const differ = differences(endingOf(stored), endingOf(row));
  // The other way round a later attempt came while we looked.
  if (row.drained === 1 && row.superseded_by !== null) {
    const { superseded_by } = row;
    differ.push(...differences({ superseded_by: stored.superseded_by }, { superseded_by }));
  }
  return differ.map((detail) => ({ rule: "d1_row_matches", detail: `${row.id} ${detail}` }));
}

/** How it ended. Rewards pass through JSON on their way to D1. */
function endingOf(row: AuditRow | AuditedRollout): Record<string, unknown> {
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

/**
 * What R2 holds of a run's trajectories, held to what the run says is there. An object's key is the hash of its content,
 * and R2 keeps the hash it was stored with: a list of keys shows what is missing and what is not what it was.
 */
export async function auditObjects(
  env: Env,
  scope: Scope,
  runId: string,
  { segments, large, training }: RunRecords,
  subrequests: Subrequests,
): Promise<ObjectAudit> {
  const folded = segments.filter(({ key }) => key !== null);
  const expected = new Set([
    ...folded.map(({ key }) => key ?? ""),
    ...large.map((digest) => trajectoryKey(scope, runId, digest)),
  ]);
  const there = new Map<string, R2Object>();
  for (const key of [segmentKey(scope, runId, ""), trajectoryKey(scope, runId, "")]) {
    const prefix = key.slice(0, key.lastIndexOf("/") + 1);
    for (const object of await listObjects(env, prefix, subrequests)) there.set(object.key, object);
  }
  const violations: AuditViolation[] = [];
  for (const key of expected) {
    const object = there.get(key);
    const hash = object === undefined ? null : await hashOf(env, object, subrequests);
    violations.push(...auditObject(key, hash));
  }
  violations.push(...(await auditBatches(env, scope, runId, training, subrequests)));
  const stray = [...there.keys()].filter((key) => !expected.has(key)).length;
  const kept = folded.filter(({ key }) => there.has(key ?? ""));
  return {
    counted: {
      segments: kept.length,
      rollouts: kept.reduce((sum, { first_seq, last_seq }) => sum + last_seq - first_seq + 1, 0),
      trajectories: large.filter((digest) => there.has(trajectoryKey(scope, runId, digest))).length,
    },
    notes: stray === 0 ? [] : [`${stray} objects of the run are in R2 that it needs no more`],
    violations,
  };
}

/** What a training run has shipped is there; trainers check the content by its digests. */
async function auditBatches(
  env: Env,
  scope: Scope,
  runId: string,
  training: RunRecords["training"],
  subrequests: Subrequests,
): Promise<AuditViolation[]> {
  if (training === null) return [];
  const { batches, samples } = training;
  const expected = [
    ...batches.flatMap((id) => Object.values(batchKeys(scope, runId, id))),
    ...samples.map((digest) => sampleKey(scope, runId, digest)),
  ];
  const there = new Set<string>();
  const anyBatch = batchKeys(scope, runId, "").manifest_key;
  const folders = [sampleKey(scope, runId, ""), anyBatch.slice(0, anyBatch.lastIndexOf("//") + 1)];
  for (const prefix of folders) {
    for (const { key } of await listObjects(env, prefix, subrequests)) there.add(key);
  }
  return expected.filter((key) => !there.has(key)).flatMap((key) => auditObject(key, null));
}

/** `hash`: of its content; null for an object that is not there. */
function auditObject(key: string, hash: string | null): AuditViolation[] {
  if (hash === null) return [{ rule: "r2_has_every_object", detail: `${key} is not there` }];
  if (key.includes(hash)) return [];
  return [{ rule: "r2_object_matches", detail: `${key} holds what hashes to ${hash}` }];
}

/** One that was stored without its hash is read. */
async function hashOf(env: Env, { key, checksums }: R2Object, subrequests: Subrequests): Promise<string | null> {
  const { sha256 } = checksums.toJSON();
  if (sha256 !== undefined) return sha256;
  return await subrequests.fetch(async () => {
    const object = await env.STORE.get(key);
    return object === null ? null : sha256Hex(await object.text());
  });
}

async function listObjects(env: Env, prefix: string, subrequests: Subrequests): Promise<R2Object[]> {
  const objects: R2Object[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await subrequests.fetch(() => env.STORE.list(cursor === undefined ? { prefix } : { prefix, cursor }));
    objects.push(...page.objects);
    if (!page.truncated) return objects;
    cursor = page.cursor;
  }
}
