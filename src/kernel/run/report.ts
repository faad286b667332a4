/** The current view of a run: counts and statistics, computed from its rows. */
import type { RunReport } from "../../contract/report.ts";
import type { RunCounts, RunView } from "../../contract/run.ts";
import { capOf } from "../../core/costs/run-costs.ts";
import { leaseStatusReason } from "../endpoint/run-lease.ts";
import { boundOf, PLATFORM_BOUNDS_MS } from "../messages/latency.ts";
import type { LiveView } from "../messages/run-records.ts";
import type { RunSpec } from "../messages/wire.ts";
import { chargedForPushes } from "./charges.ts";
import { maxConcurrentOf, statusOf } from "./control.ts";
import { refusedBy } from "./refusals.ts";
import { ReportSums, reportOfRows } from "./report-sums.ts";
import type { RunHead } from "./schema.ts";
import { appendEvent, pendingOf, plannedOf } from "./standing.ts";
import type { RunStore } from "./store.ts";

export function countsOf(spec: RunSpec, head: RunHead): RunCounts {
  return {
    planned: plannedOf(spec, head),
    pending: pendingOf(spec, head),
    dispatched: head.dispatched,
    in_flight: head.in_flight,
    scored: head.scored,
    unscored: { ...head.unscored },
    failed: { ...head.failed },
    cancelled: { ...head.cancelled },
  };
}

/** Why dispatch continues or waits: first the owner's actions, then the endpoint's lease. */
function statusReasonOf(spec: RunSpec, head: RunHead, now: number, parts: ViewParts): RunView["status_reason"] {
  const { stop, settled_at, paused, gate, running } = head;
  if (settled_at !== null) return null;
  if (stop?.kind === "fail") return { state: "draining", reason: stop.message };
  if (stop !== null) return { state: "draining", reason: STOPPED[stop.reason] };
  const refused = refusedBy(head);
  if (refused !== null) return { state: "draining", reason: refused };
  const trainer = parts.trainingStatusReason(spec);
  if (trainer !== null) return trainer;
  if (paused) return { state: "paused", reason: "user" };
  const gated = leaseStatusReason(gate, running, now);
  // With nothing left to dispatch only an outage matters: calls in flight wait until it ends.
  const waits = pendingOf(spec, head) > 0 || gated?.state === "endpoint_down" ? gated : null;
  return waits ?? parts.hindrance(spec) ?? parts.judgeStatusReason(spec) ?? { state: "active", reason: null };
}

function countedOf({ spent, lost, released }: RunHead["cap"]): Pick<RunReport, "counted_micros" | "lost_reservations"> {
  return { counted_micros: spent, lost_reservations: { ...lost, ...(released.calls > 0 && { released }) } };
}

/** Empty until a rollout has reported. */
function platformTime({ platform }: RunHead): Pick<RunReport, "latency"> {
  if (platform === undefined) return {};
  const within = (share: number) => boundOf(platform, PLATFORM_BOUNDS_MS, share);
  return { latency: { platform_ms: { p50: within(0.5), p99: within(0.99) } } };
}

const STOPPED = {
  user: "cancelled by the user",
  deadline: "its deadline has passed",
  budget: "its max_cost_micros is reached",
} as const;

/** Superseded attempts change the sums, so all rows must be read again. About this many rows are read per second. */
const ROWS_WALKED_PER_S = 20_000;

const PROGRESS_EVERY_MS = 1000;

/**
 * Parts of the view that other modules compute. A `status_reason` is why the run waits; null if that is not the reason.
 */
export interface ViewParts {
  /** Reasons other than its owner and its endpoint. */
  readonly hindrance: (spec: RunSpec) => RunView["status_reason"];
  readonly judgeStatusReason: (spec: RunSpec) => RunView["status_reason"];
  readonly trainingStatusReason: (spec: RunSpec) => RunView["status_reason"];
  readonly training: (spec: RunSpec) => LiveView["training"];
}

/** Views of a run. Before its end each adds the ends since the last one; after it all are summed once, in order. */
export class LiveViews {
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #parts: ViewParts;
  #made: { readonly of: string; readonly report: RunReport } | null = null;
  #sums: { readonly sums: ReportSums; readonly retries: number; readonly at: number } | null = null;
  #summed = 0;
  /** The last progress event, as text. */
  #progress = "";
  #state: string | null = null;
  #lastProgressAt = 0;

  constructor(store: RunStore, now: () => number, parts: ViewParts) {
    this.#store = store;
    this.#now = now;
    this.#parts = parts;
  }

  of(spec: RunSpec): LiveView {
    const head = this.#store.head();
    return {
      status: statusOf(head),
      error: head.error,
      settled_at: head.settled_at,
      status_reason: statusReasonOf(spec, head, this.#now(), this.#parts),
      counts: countsOf(spec, head),
      max_concurrent: maxConcurrentOf(spec, head),
      dead_letters: head.dead_letters,
      last_event: head.last_event,
      report: this.#report(spec, head),
      training: this.#parts.training(spec),
    };
  }

  /**
   * Appends a progress event if something changed, once a second at most. If nothing is in flight, a new reason for
   * waiting is reported at once: no other event may follow for hours.
   */
  noteProgress(spec: RunSpec): void {
    const now = this.#now();
    const head = this.#store.head();
    if (head.settled_at !== null) return;
    const state = statusReasonOf(spec, head, now, this.#parts)?.state ?? null;
    const waitsAnew = head.in_flight === 0 && state !== this.#state;
    if (!waitsAnew && now - this.#lastProgressAt < PROGRESS_EVERY_MS) return;
    this.#lastProgressAt = now;
    this.#state = state;
    const { counts, report } = this.of(spec);
    const data = { counts, reward: report.reward, turns: report.turns, usage: report.usage };
    const parts = JSON.stringify([state, data]);
    if (parts === this.#progress) return;
    this.#progress = parts;
    this.#store.transaction(() => appendEvent(this.#store, "run.progress", data));
  }

  /** Adds what the rows lack: charges for batches, and costs of judges whose scoring groups were never scored. */
  #report(spec: RunSpec, head: RunHead): RunReport {
    const report = this.#ofRows(spec, head);
    const { charged_micros = 0 } = report.usage;
    const usage = { ...report.usage, charged_micros: charged_micros + chargedForPushes(spec, head) };
    const capped = capOf(spec) === null ? {} : countedOf(head.cap);
    return { ...report, usage, ...capped, ...platformTime(head) };
  }

  #ofRows(spec: RunSpec, { finished, retries_dispatched, settled_at }: RunHead): RunReport {
    const of = `${finished}/${retries_dispatched}/${settled_at}`;
    if (this.#made?.of === of) return this.#made.report;
    const report = settled_at === null ? this.#soFar(spec) : reportOfRows(spec, this.#store.reportRows());
    // Sums that include superseded rows will be replaced soon: they are not cached.
    const current = settled_at !== null || this.#sums?.retries === retries_dispatched;
    this.#made = current ? { of, report } : null;
    return report;
  }

  #soFar(spec: RunSpec): RunReport {
    const { retries_dispatched: retries } = this.#store.head();
    const at = this.#now();
    const known = this.#sums;
    const walked = known === null ? 0 : (this.#summed / ROWS_WALKED_PER_S) * 1000;
    const stale = known !== null && known.retries !== retries && at - known.at >= walked;
    const kept = stale ? null : known;
    if (kept === null) this.#summed = 0;
    const sums = kept?.sums ?? new ReportSums(spec);
    this.#sums = kept ?? { sums, retries, at };
    for (const row of this.#store.reportRowsAfter(this.#summed)) {
      sums.add(row);
      this.#summed = row.finish_seq ?? this.#summed;
    }
    return sums.report();
  }
}
