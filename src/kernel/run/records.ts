/**
 * Two of the four records that an audit compares, from one run's object: its counters, and the same numbers counted
 * from its rows. Both are of the same moment, since nothing else runs in between. Only reads.
 */
import { countOutcomes } from "../../contract/audit.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunCounts } from "../../contract/run.ts";
import type { RunRecords, Tally } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";
import { countsOf } from "./report.ts";
import type { RunHead } from "./schema.ts";
import { slotsOf } from "./standing.ts";

/** Rollouts that do not answer are notified for minutes before they are given up; then each needs its closing time. */
const NOTIFIED_MS = 15 * 60_000;
const ROLLOUTS_NAMED = 3;

/** `trainingOf`: the same records of its training, by the module that owns those tables. */
export function recordsOf(
  sql: SqlStorage,
  spec: RunSpec,
  head: RunHead,
  trainingOf: (sql: SqlStorage, head: RunHead) => RunRecords["training"],
): RunRecords {
  const segments = sql
    .exec<{ first_seq: number; last_seq: number; key: string | null }>(
      "select first_seq, last_seq, key from segments order by first_seq",
    )
    .toArray();
  const rows = countRows(sql);
  const { running, finished, retried, dead_letters } = head;
  const draining = drainingOf(sql, spec, head);
  return {
    counters: countsOf(spec, head),
    run_rows: countsOfRows(sql, slotsOf(spec, head), rows),
    tallies: {
      counters: { running, finished, retried, dead_letters },
      run_rows: { ...rows.tallies, retried: rows.again + rows.waiting },
    },
    last_end: rows.last_end,
    doubled_slots: rows.doubled,
    segmented: head.segmented,
    segments,
    large: largeTrajectories(sql, head, segments),
    spent: spentBy(sql),
    settled: head.settled_at !== null,
    status: head.status,
    row_current: head.row_current,
    training: trainingOf(sql, head),
    ...(draining && { draining }),
  };
}

function spentBy(sql: SqlStorage): Tally {
  return sql
    .exec<Record<string, number>>(
      `select sum(turns) as turns, sum(calls) as calls, sum(prompt_tokens) as prompt_tokens,
        sum(completion_tokens) as completion_tokens, sum(judge_calls) as judge_calls
      from rollouts where status = 'done'`,
    )
    .one();
}

function drainingOf(
  sql: SqlStorage,
  { limits }: RunSpec,
  { stop, settled_at }: RunHead,
): RunRecords["draining"] | null {
  if (settled_at !== null || stop?.kind !== "cancel") return null;
  const waiting = sql.exec<{ id: string }>(
    "select id from rollouts where status != 'done' order by seq limit ?",
    ROLLOUTS_NAMED,
  );
  // A judge call that has begun ends within a call's time.
  const longest = NOTIFIED_MS + limits.call_timeout_s * 1000 + LIMITS.closingMs;
  return { ends_by: stop.at + longest, rollouts: [...waiting].map(({ id }) => id) };
}

function countRows(sql: SqlStorage) {
  const row = sql
    .exec<Record<string, number>>(
      `select count(*) as dispatched, total(status != 'done') as in_flight, total(status = 'running') as running,
        count(finish_seq) as finished, ifnull(max(finish_seq), 0) as last_end,
        total(attempt > 0) as again,
        (select count(*) from retries) as waiting, (select count(*) from dead_letters) as dead_letters,
        (select count(*) from (select 1 from rollouts group by group_index, slot
          having total(superseded_by is null) != 1)) as doubled
      from rollouts`,
    )
    .one();
  const of = (name: string) => Number(row[name]);
  return {
    dispatched: of("dispatched"),
    in_flight: of("in_flight"),
    last_end: of("last_end"),
    again: of("again"),
    waiting: of("waiting"),
    doubled: of("doubled"),
    tallies: {
      running: of("running"),
      finished: of("finished"),
      dead_letters: of("dead_letters"),
    },
  };
}

function countsOfRows(
  sql: SqlStorage,
  slots: number,
  { dispatched, in_flight, again, waiting }: ReturnType<typeof countRows>,
): RunCounts {
  const ended = sql.exec<{ outcome: string; reason: string | null; n: number }>(
    "select outcome, reason, count(*) as n from rollouts where status = 'done' group by outcome, reason",
  );
  return {
    planned: slots + again + waiting,
    pending: slots - (dispatched - again) + waiting,
    dispatched,
    in_flight,
    ...countOutcomes(ended),
  };
}

/** Digests of trajectories that are neither in a compacted segment nor in the object itself. */
export function largeTrajectories(sql: SqlStorage, { segmented }: RunHead, segments: RunRecords["segments"]): string[] {
  const uncompacted = segments.filter(({ key }) => key === null);
  const ranges = [
    "finish_seq is null",
    `finish_seq > ${segmented}`,
    ...uncompacted.map(({ first_seq, last_seq }) => `finish_seq between ${first_seq} and ${last_seq}`),
  ];
  return ranges.flatMap((range) =>
    sql
      .exec<{ digest: string }>(
        `select digest from rollouts where digest is not null and ${range}
          and not exists (select 1 from trajectories where trajectories.seq = rollouts.seq)`,
      )
      .toArray()
      .map(({ digest }) => digest),
  );
}
