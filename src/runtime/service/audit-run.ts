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
import { countRollouts } from "../../db/rollouts.ts";

import { type RunRecord, runViewOf } from "../../db/runs.ts";
import type { Result } from "../contract/refusal.ts";
import type { RunRpc } from "../contract/rpc.ts";
import type { RunRecords } from "../contract/run-records.ts";
import { damagedMessage, goneMessage, isUnreadable } from "../kit/platform-fault.ts";
import { failedForStorage } from "../kit/storage-full.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { auditDatabase } from "./audit-database.ts";
import { auditObjects } from "./audit-objects.ts";
import { openRun } from "./read-run.ts";

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
    violations: [...auditRecords(records), ...overdue(records, now), ...inDatabase, ...inStore.violations],
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
function overdue({ draining, counters }: RunRecords, now: number): AuditViolation[] {
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
