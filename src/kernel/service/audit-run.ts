/**
 * The audit of a run: compares the counters and rows of its object, the run's row in D1, and the objects in R2.
 *
 * The object counts its rows itself, in one call, because all counts must be from one moment. The work is counted by
 * the size of the run. Keys of R2 are listed 1,000 at a time. Nothing is stopped meanwhile. Work that was in progress
 * during the comparison is not a violation: if anything differs, everything is compared again, and only rules that are
 * broken both times are reported.
 */
import {
  type AuditRule,
  type AuditViolation,
  brokenLaw,
  differences,
  flatCounts,
  type RunAudit,
} from "../../contract/audit.ts";
import type { RunReport } from "../../contract/report.ts";
import type { Scope } from "../../contract/scope.ts";
import { databaseOf } from "../db/database.ts";
import { getRun, type RunRecord, runViewOf } from "../db/runs.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { batchKeys, sampleKey, segmentKey, trajectoryKey } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import { damagedMessage, failedForStorage, goneMessage, isUnreadable } from "../kit/storage-faults.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { Result } from "../messages/refusal.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { LiveView, RunRecords, Tally } from "../messages/run-records.ts";
import { openRun } from "./read-run.ts";

interface ObjectAudit {
  readonly counted: RunAudit["sources"]["r2"];
  readonly notes: string[];
  readonly violations: AuditViolation[];
}

/** Enough to audit a run of a million rollouts; production stops an invocation at 10,000. */
const SUBREQUESTS = 4500;
/** The object scans its rows a few times in one call, about 2 µs for each row. */
const STEPS_PER_ROW = 40;
/** Violations of one rule that are listed one by one. */
const MOST_LISTED = 10;

/** `now`: epoch milliseconds. */
export async function auditRun(env: Env, scope: Scope, id: string, now: number): Promise<Result<RunAudit>> {
  const found = await openRun(env, scope, id);
  if (!found.ok) return found;
  const { record, object } = found.value;
  const known = await standingOf(env, id, object);
  if (typeof known === "string") return { ok: true, value: auditWithout(record, known, now) };
  const lookOnce = async () => {
    await PROCESS_SCHEDULER.spend(scope.orgId, known.counts.dispatched * STEPS_PER_ROW);
    return await look(env, scope, id, object, now);
  };
  const first = await lookOnce();
  if (first.violations.length === 0) return { ok: true, value: auditOf(id, now, first) };
  const broken = new Set(first.violations.map(({ rule }) => rule));
  const again = await lookOnce();
  const violations = again.violations.filter(({ rule }) => broken.has(rule));
  return { ok: true, value: auditOf(id, now, { ...again, violations }) };
}

/** The state of the run, or an error message if its object has nothing to compare. */
async function standingOf(env: Env, id: string, object: RunRpc): Promise<LiveView | string> {
  try {
    return (await object.view()) ?? goneMessage(id);
  } catch (thrown) {
    if (!isUnreadable(env, thrown) || (await failedForStorage(env, thrown))) throw thrown;
    return damagedMessage(id);
  }
}

/** The counts are the last ones that D1 got; the counts of the object are unknown. */
function auditWithout(record: RunRecord, detail: string, now: number): RunAudit {
  const { id, counts } = runViewOf(record);
  const sources = {
    counters: UNCOUNTED,
    run_rows: UNCOUNTED,
    d1: { ...counts, current: false },
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
  const inDatabase = await auditDatabase(env, scope, id, records, subrequests);
  const inStore = await auditObjects(env, scope, id, records, subrequests);
  const { counters, run_rows, tallies } = records;
  return {
    sources: {
      counters,
      run_rows,
      d1: inDatabase.counted,
      r2: inStore.counted,
    },
    notes: [...deadLetters(tallies.counters.dead_letters), ...inStore.notes],
    violations: [
      ...auditRecords(records),
      ...findOverdue(records, now),
      ...inDatabase.violations,
      ...inStore.violations,
    ],
  };
}

/** Compares the run's own two records. */
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
    ...(last_end === ends ? [] : [violation("ends_are_numbered", `the last of ${ends} ends has number ${last_end}`)]),
    ...(doubled_slots === 0
      ? []
      : [violation("one_attempt_counts", `in ${doubled_slots} slots no attempt counts, or more than one`)]),
    ...gaps(records),
  ];
}

/** A cancelled run must end by a fixed time, whatever its rollouts do. */
function findOverdue({ draining, counters }: RunRecords, now: number): AuditViolation[] {
  if (draining === undefined || now < draining.ends_by) return [];
  const since = new Date(draining.ends_by).toISOString();
  const waits = `${counters.in_flight} rollouts are in flight, ${draining.rollouts.join(", ")} first`;
  const detail = `it was cancelled and should have ended by ${since}: ${waits}`;
  return [violation("ends_in_time", detail)];
}

/** Segments must cover the ends without gaps, one after the other. */
function gaps({ segments, segmented }: RunRecords): AuditViolation[] {
  const broken: AuditViolation[] = [];
  let covered = 0;
  for (const { first_seq, last_seq } of segments) {
    if (first_seq !== covered + 1) {
      broken.push(violation("segments_cover_ends", `the segment after end ${covered} starts at ${first_seq}`));
    }
    covered = last_seq;
  }
  if (covered === segmented) return broken;
  const detail = `they cover ${covered} ends, but the run counts ${segmented}`;
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

/** The first violations of each rule, and how many more there are. */
function cut(violations: readonly AuditViolation[]): AuditViolation[] {
  const byRule = Object.groupBy(violations, ({ rule }) => rule);
  return Object.values(byRule).flatMap((broken) => {
    const [first] = broken;
    if (first === undefined || broken.length <= MOST_LISTED) return broken;
    const more = violation(first.rule, `and ${broken.length - MOST_LISTED} more`);
    return [...broken.slice(0, MOST_LISTED), more];
  });
}

function deadLetters(count: number): string[] {
  if (count === 0) return [];
  return [`${count} messages ended in a dead-letter queue; the run's alarm does their work`];
}

function violation(rule: AuditRule, detail: string): AuditViolation {
  return { rule, detail };
}

/** Reads the run's row in D1. It is compared with the run's own counters once nothing will change it any more. */
async function auditDatabase(
  env: Env,
  scope: Scope,
  id: string,
  { settled, row_current: current, status, counters, spent }: RunRecords,
  subrequests: Subrequests,
): Promise<{ readonly counted: RunAudit["sources"]["d1"]; readonly violations: AuditViolation[] }> {
  const record = await subrequests.fetch(() => getRun(databaseOf(env), scope, id));
  if (record === null) throw new Error(`run ${id} has no row`);
  const { counts, status: stored, report } = runViewOf(record);
  const counted = { ...counts, current };
  if (!settled || !current) return { counted, violations: [] };
  const differ = [
    ...differences({ status: stored, ...flatCounts(counts) }, { status, ...flatCounts(counters) }),
    ...(spent === undefined ? [] : differences(spentIn(report), spent)),
  ];
  return { counted, violations: differ.map((detail) => violation("d1_run_matches", detail)) };
}

function spentIn({ turns, calls, usage }: RunReport): Tally {
  const { prompt_tokens, completion_tokens, judge } = usage;
  return { turns, calls, prompt_tokens, completion_tokens, judge_calls: judge?.calls ?? 0 };
}

/**
 * Compares the objects in R2 with the trajectories that the run lists. An object's key has the hash of its content, and
 * R2 stores the hash of what was uploaded. So a list of the keys shows which objects are missing or changed.
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
    notes: stray === 0 ? [] : [`${stray} objects of the run in R2 are no longer needed`],
    violations,
  };
}

/** Checks that everything a training run has shipped is in R2. Trainers check the content by its digests. */
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

/** `hash`: of its content; null if the object is missing. */
function auditObject(key: string, hash: string | null): AuditViolation[] {
  if (hash === null) return [{ rule: "r2_has_every_object", detail: `${key} is missing` }];
  if (key.includes(hash)) return [];
  return [{ rule: "r2_object_matches", detail: `the content of ${key} has the hash ${hash}` }];
}

/** An object that was stored without a hash is read. */
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
