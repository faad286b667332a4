/** Measures, on this machine, the two computations of an object that grow with the number of runs or rollouts. */
import { DatabaseSync } from "node:sqlite";
import { NO_OUTCOMES } from "../../src/kernel/endpoint/health.ts";
import {
  ask,
  type EndpointState,
  newEndpoint,
  nextEndpointAlarm,
  noteNotified,
  toNotify,
} from "../../src/kernel/endpoint/lease-state.ts";
import type { LeaseAsk } from "../../src/kernel/messages/endpoint-wire.ts";
import { REPORT_QUERY, type ReportRow, ReportSums } from "../../src/kernel/run/report-sums.ts";
import { NEW_ROLLOUT, RUN_MIGRATIONS, RUN_SCHEMA } from "../../src/kernel/run/schema.ts";

const ASKS = 20;
const START_MS = 1_800_000_000_000;
const EACH = 8;

/**
 * Milliseconds that an endpoint's object computes for one ask, with so many runs; the median of several asks. `changes`:
 * each ask wants another number of rollouts than its run did before, so that all shares are computed again.
 */
export function msOfAsk(runs: number, changes: boolean): number {
  let state: EndpointState = newEndpoint({ max_concurrent: runs * EACH, rpm: null });
  for (let run = 0; run < runs; run += 1) state = ask(state, askOf(run), START_MS).state;
  const times = Array.from({ length: ASKS }, (_, at) => {
    const began = performance.now();
    // What the object does for each ask: it grants, looks whom to notify, and sets its alarm.
    const { state: granted } = ask(state, askOf(at % runs, changes ? 1 + at : EACH), START_MS + at);
    state = noteNotified(granted, toNotify(granted, START_MS + at), START_MS + at);
    nextEndpointAlarm(state, START_MS + at);
    return performance.now() - began;
  });
  return times.toSorted((one, other) => one - other)[ASKS / 2] ?? 0;
}

function askOf(run: number, wants = EACH): LeaseAsk {
  return {
    scope: { orgId: `org_${run % 10}`, projectId: "pj" },
    ...{ endpoint_id: "ep", run_id: `run_${String(run).padStart(6, "0")}`, model: "model", outcomes: NO_OUTCOMES },
    ...{ running: Math.min(wants, EACH), wants, more: true },
  };
}

const PER_EXAMPLE = 8;
const SCORES = JSON.stringify([{ name: "exact", value: 1, weight: 1 }]);

/** Seconds that a run's object computes for the report of a settled run with so many rollouts, read from its tables. */
export function secondsOfReport(rollouts: number): number {
  const database = new DatabaseSync(":memory:");
  for (const statement of RUN_SCHEMA) database.exec(statement);
  for (const { statements } of RUN_MIGRATIONS) for (const statement of statements) database.exec(statement);
  const names = Object.keys(rolloutRow(0));
  const values = names.map(() => "?").join(", ");
  const insert = database.prepare(`insert into rollouts (${names.join(", ")}) values (${values})`);
  database.exec("begin");
  for (let at = 0; at < rollouts; at += 1) insert.run(...Object.values(rolloutRow(at)));
  database.exec("commit");
  const began = performance.now();
  const sums = new ReportSums({ rollouts_per_example: PER_EXAMPLE });
  for (const row of rowsOf(database)) sums.add(row);
  sums.report();
  const seconds = (performance.now() - began) / 1000;
  database.close();
  return seconds;
}

/** The database returns the columns of the query, which are those of the type. */
function rowsOf(database: DatabaseSync): Iterable<ReportRow> {
  return database.prepare(REPORT_QUERY).iterate(-1, -1, -1, -1) as Iterable<ReportRow>;
}

function rolloutRow(at: number) {
  const place = { group_index: Math.floor(at / PER_EXAMPLE), slot: at % PER_EXAMPLE, attempt: 0 };
  return {
    ...NEW_ROLLOUT,
    ...{
      seq: at + 1,
      ...place,
      id: `ro_${String(at).padStart(32, "0")}`,
      status: "done",
      outcome: "scored",
      ask_at: 0,
    },
    ...{ turns: 10, calls: 10, prompt_tokens: 9000, completion_tokens: 2000, stop_condition: "no_tools_called" },
    ...{ reward: at % 2, scores: SCORES, finish_seq: at + 1 },
  };
}
