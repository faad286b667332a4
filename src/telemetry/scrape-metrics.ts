/**
 * The metrics of a deployment for monitoring: counts, never a customer's name, prompt or price.
 *
 * Invariants. A scrape makes at most `MOST_READS` reads, however much data there is, and writes nothing. Label values
 * come from fixed lists, except endpoint ids, of which there are at most `MOST_ENDPOINTS`. A part that cannot be read
 * is left out and counted; the other parts are shown.
 */
import { CANCEL_REASONS, FAILURE_CLASSES, UNSCORED_CAUSES } from "../contract/errors.ts";
import { RUN_STATUSES } from "../contract/run.ts";
import { ROLLOUT_SCHEMA } from "../contract/trajectory.ts";
import { type Database, databaseOf } from "../kernel/db/database.ts";
import { logError } from "../kernel/kit/log.ts";
import { endpointObject } from "../kernel/kit/names.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";
import { type Counted, LATENCY_BOUNDS_S, type Latencies, PLATFORM_BOUNDS_MS } from "../kernel/messages/latency.ts";
import { WORK_QUEUES } from "../kernel/messages/queues.ts";
import { type Family, histogramSamples, prometheusText, type Sample } from "./prometheus.ts";
import { countUnfinishedRuns, type EndpointInUse, listEndpointsInUse, readTotals, type Total } from "./queries.ts";

/** 30 with the two reads that authenticate the caller. Of several D1 databases, a read of all of them counts as one here. */
const MOST_READS = 28;
/** The endpoints with latencies: those that most runs use. */
const MOST_ENDPOINTS = 5;
/** How long an endpoint is shown after its last run: runs report their calls to it at least every 5 minutes. */
const USED_LATELY_MS = 15 * 60_000;
const PARTS = ["database", "queues", "endpoints"] as const;
type Part = (typeof PARTS)[number];

const UNFINISHED = ["queued", "running", "paused"];
const ENDED = RUN_STATUSES.filter((status) => !UNFINISHED.includes(status));
/**
 * Every way in which a rollout can end. Shown as 0 until the first one ends so, so that a rate is known from the start.
 */
const OUTCOMES = [
  { kind: "scored", names: [""] },
  { kind: "unscored", names: UNSCORED_CAUSES },
  { kind: "failed", names: FAILURE_CLASSES },
  { kind: "cancelled", names: CANCEL_REASONS },
] as const;

/** The text for Prometheus. `now`: epoch milliseconds. */
export async function scrapeMetrics(env: Env, now: number): Promise<string> {
  const reads = new Reads(databaseOf(env));
  const [database, queues, endpoints] = await Promise.all([
    readDatabase(reads),
    readQueues(env, reads, now),
    readEndpoints(env, reads, now),
  ]);
  return prometheusText([...build(), ...database, ...queues, ...endpoints, ...reads.families()]);
}

/** Counts the reads, and the failed ones. */
class Reads {
  readonly #database: Database;
  /** Those of D1 databases after the first. */
  #more = 0;
  readonly #calls = new Subrequests(MOST_READS);
  readonly #failed: Record<Part, number> = { database: 0, queues: 0, endpoints: 0 };

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes one read of each D1 database; null if one failed. */
  async ofEach<T>(part: Part, call: (database: Database) => Promise<T>): Promise<T | null> {
    this.#more += this.#database.all.length - 1;
    return await this.of(part, () => call(this.#database));
  }

  /** Makes one read; null if it failed. */
  async of<T>(part: Part, call: () => Promise<T>): Promise<T | null> {
    try {
      return await this.#calls.inTurn(call);
    } catch (thrown) {
      this.#failed[part] += 1;
      logError("metrics cannot be read", {}, thrown);
      return null;
    }
  }

  families(): Family[] {
    const failed = PARTS.map((part) => ({ labels: { part }, value: this.#failed[part] }));
    return [
      gauge("rollcall_scrape_reads", "Reads that this scrape took", [{ value: this.#calls.count + this.#more }]),
      gauge("rollcall_scrape_failed_reads", "Reads of this scrape that failed; their metrics are left out", failed),
    ];
  }
}

function build(): Family[] {
  const labels = { api: "1", rollout_schema: String(ROLLOUT_SCHEMA) };
  return [gauge("rollcall_build_info", "The deployed release", [{ labels, value: 1 }])];
}

async function readDatabase(reads: Reads): Promise<Family[]> {
  const [unfinished, totals] = await Promise.all([
    reads.ofEach("database", countUnfinishedRuns),
    reads.ofEach("database", readTotals),
  ]);
  const sumOf = (state: "pending" | "in_flight") => {
    const value = (unfinished ?? []).reduce((sum, row) => sum + row[state], 0);
    return { labels: { state }, value };
  };
  const runs = UNFINISHED.map((status) => {
    return { labels: { status }, value: unfinished?.find((row) => row.status === status)?.runs ?? 0 };
  });
  const known = <T>(samples: readonly T[]) => (unfinished === null ? [] : samples);
  return [
    gauge("rollcall_runs", "Runs that have not ended, by status", known(runs)),
    gauge("rollcall_rollouts", "Rollouts of runs that have not ended", known([sumOf("pending"), sumOf("in_flight")])),
    ...(totals === null ? [] : totalFamilies(totals)),
  ];
}

function totalFamilies(totals: readonly Total[]): Family[] {
  const numberOf = (kind: string, name = "") => totals.find((one) => one.kind === kind && one.name === name)?.n ?? 0;
  const runs = ENDED.map((status) => ({ labels: { status }, value: numberOf("runs", status) }));
  const rollouts = OUTCOMES.flatMap(({ kind, names }) =>
    names.map((name) => ({ labels: { outcome: kind, reason: name }, value: numberOf(kind, name) })),
  );
  return [
    counter("rollcall_runs_ended_total", "Runs that ended, by status", runs),
    counter(
      "rollcall_rollouts_ended_total",
      "Rollouts that ended, by outcome and its cause, class or reason",
      rollouts,
    ),
    counter("rollcall_dead_letters_total", "Messages that a queue gave up on", [{ value: numberOf("dead_letters") }]),
    counter("rollcall_spans_dropped_total", "Spans that the collector did not accept", [
      { value: numberOf("spans_dropped") },
    ]),
    counter("rollcall_payment_events_unposted_total", "Payment events whose money is in no ledger", [
      { value: numberOf("events_unposted") },
    ]),
  ];
}

async function readQueues(env: Env, reads: Reads, now: number): Promise<Family[]> {
  const read = await Promise.all(
    WORK_QUEUES.map(async ({ binding, queue }) => {
      const met = await reads.of("queues", () => env[binding].metrics());
      return met === null ? [] : [{ labels: { queue }, ...met }];
    }),
  );
  const met = read.flat();
  const samples = (read: (one: QueueMetrics) => number): Sample[] =>
    met.map((one) => ({ labels: one.labels, value: read(one) }));
  // An empty queue has no oldest message, even if it reports a time.
  const age = ({ backlogCount, oldestMessageTimestamp: at }: QueueMetrics) =>
    backlogCount === 0 || at === undefined ? 0 : Math.max(0, now - Number(at)) / 1000;
  return [
    gauge(
      "rollcall_queue_messages",
      "Messages that wait in a queue",
      samples(({ backlogCount }) => backlogCount),
    ),
    gauge(
      "rollcall_queue_bytes",
      "Their bytes",
      samples(({ backlogBytes }) => backlogBytes),
    ),
    gauge("rollcall_queue_oldest_seconds", "How long the oldest of them has waited", samples(age)),
  ];
}

async function readEndpoints(env: Env, reads: Reads, now: number): Promise<Family[]> {
  const choice = { since: now - USED_LATELY_MS, limit: MOST_ENDPOINTS };
  const listed = await reads.ofEach("endpoints", (database) => listEndpointsInUse(database, choice));
  if (listed === null) return [];
  const read = (await Promise.all(listed.map((one) => readLatencies(env, reads, one)))).filter((one) => one !== null);
  return [
    gauge("rollcall_endpoints", "Endpoints that runs use, or used lately", [{ value: listed[0]?.of ?? 0 }]),
    {
      name: "rollcall_model_latency_seconds",
      type: "histogram",
      help: `How long answered calls took, of the ${MOST_ENDPOINTS} endpoints that most runs use`,
      samples: read.flatMap(({ model }) => model),
    },
    {
      name: "rollcall_platform_latency_seconds",
      type: "histogram",
      help: "What the platform added to turns, of the same endpoints",
      samples: read.flatMap(({ platform }) => platform),
    },
  ];
}

async function readLatencies(
  env: Env,
  reads: Reads,
  { endpoint_id, scope }: EndpointInUse,
): Promise<{ readonly model: Sample[]; readonly platform: Sample[] } | null> {
  const read = await reads.of<Latencies | null>("endpoints", () => endpointObject(env, scope, endpoint_id).latencies());
  if (read === null) return null;
  const latencySamples = ({ counts, sum_ms }: Counted, bounds: readonly number[]) =>
    histogramSamples({ endpoint: endpoint_id }, { bounds, counts, sum: sum_ms / 1000 });
  const bounds = PLATFORM_BOUNDS_MS.map((ms) => ms / 1000);
  return {
    model: latencySamples(read, LATENCY_BOUNDS_S),
    platform: read.platform === undefined ? [] : latencySamples(read.platform, bounds),
  };
}

function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "gauge", help, samples };
}

function counter(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "counter", help, samples };
}
