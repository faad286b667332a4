/** The current view of a run: counts and statistics, computed from its rows. */
import type { RunReport } from "../../contract/report.ts";
import type { RunCounts, RunView } from "../../contract/run.ts";
import { capOf } from "../../core/costs/run-costs.ts";
import { leaseStatusReason } from "../endpoint/run-lease.ts";
import { boundOf, PLATFORM_BOUNDS_MS } from "../messages/latency.ts";
import type { LiveView } from "../messages/run-records.ts";
import type { RolloutSlot, RunSpec } from "../messages/wire.ts";
import { chargedForPushes } from "./charges.ts";
import { maxConcurrentOf, statusOf } from "./control.ts";
import { refusedBy } from "./refusals.ts";
import { ReportSums } from "./report-sums.ts";
import type { RunHead } from "./schema.ts";
import { appendEvent, pendingOf, plannedOf } from "./standing.ts";
import type { RunStore } from "./store.ts";

/** What a report is computed from: it changes with every end, retry and settlement. */
function keyOf({ finished, retries_dispatched, settled_at }: RunHead): string {
  return `${REPORT_FORM}/${finished}/${retries_dispatched}/${settled_at}`;
}

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

/** Rows of an ended run that are summed at once; between two slices other requests are answered. */
const SLICE_ROWS = 2000;
/** Raised when the same rows give another report: stored reports are then computed again. */
const REPORT_FORM = 1;
/** A larger report is not stored, but computed again by each instance of the object. */
const MOST_STORED_CHARACTERS = 1_000_000;
const BEFORE_ALL: RolloutSlot = { group: -1, slot: -1, attempt: -1 };

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

/**
 * Views of a run. Before its end each adds the ends since the last one. After it all rows are summed once, in order, and
 * the report is stored: call `storeReport` before a view of a run that may have ended, or the view itself sums all rows, and
 * nothing else is answered meanwhile.
 */
export class LiveViews {
  readonly #store: RunStore;
  readonly #now: () => number;
  readonly #parts: ViewParts;
  #made: { readonly of: string; readonly report: RunReport } | null = null;
  #sums: { readonly sums: ReportSums; readonly retries: number; readonly at: number } | null = null;
  #summed = 0;
  #storing: Promise<void> | null = null;
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
    const report = this.#report(spec, this.#store.head());
    return { ...this.standing(spec), report, training: this.#parts.training(spec) };
  }

  /** The view without its report, which may take long. */
  standing(spec: RunSpec): Omit<LiveView, "report" | "training"> {
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
    };
  }

  /** Stores the report of an ended run, unless it is stored. Callers at the same time share the work. */
  async storeReport(spec: RunSpec): Promise<void> {
    const head = this.#store.head();
    if (head.settled_at === null || head.finished <= SLICE_ROWS || this.#known(keyOf(head)) !== null) return;
    this.#storing ??= this.#sumAll(spec, keyOf(head)).finally(() => {
      this.#storing = null;
    });
    await this.#storing;
  }

  /** Stops if the run continues meanwhile: its rows change then. */
  async #sumAll(spec: RunSpec, key: string): Promise<void> {
    const sums = new ReportSums(spec);
    for (let after: RolloutSlot | null = BEFORE_ALL; after !== null; ) {
      after = this.#addSlice(sums, after);
      await scheduler.wait(0);
      if (keyOf(this.#store.head()) !== key) return;
    }
    this.#keep(key, sums.report());
  }

  /** Returns the place of the last row of the slice; null if it was the last one of all. */
  #addSlice(sums: ReportSums, after: RolloutSlot): RolloutSlot | null {
    let [last, rows] = [after, 0];
    for (const row of this.#store.reportRows(after, SLICE_ROWS)) {
      sums.add(row);
      last = { group: row.group_index, slot: row.slot, attempt: row.attempt };
      rows += 1;
    }
    return rows < SLICE_ROWS ? null : last;
  }

  /** The report of an ended run that was computed before; null if there is none. */
  #known(key: string): RunReport | null {
    if (this.#made?.of !== key) {
      const report = this.#store.report(key);
      if (report !== null) this.#made = { of: key, report };
    }
    return this.#made?.of === key ? this.#made.report : null;
  }

  #keep(key: string, report: RunReport): void {
    this.#made = { of: key, report };
    if (JSON.stringify(report).length <= MOST_STORED_CHARACTERS) this.#store.saveReport({ key, report });
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

  #ofRows(spec: RunSpec, head: RunHead): RunReport {
    const key = keyOf(head);
    if (head.settled_at !== null) return this.#known(key) ?? this.#ofEnded(spec, key);
    if (this.#made?.of === key) return this.#made.report;
    const report = this.#soFar(spec);
    // Sums that include superseded rows will be replaced soon: they are not cached.
    this.#made = this.#sums?.retries === head.retries_dispatched ? { of: key, report } : null;
    return report;
  }

  #ofEnded(spec: RunSpec, key: string): RunReport {
    const sums = new ReportSums(spec);
    for (let after: RolloutSlot | null = BEFORE_ALL; after !== null; ) after = this.#addSlice(sums, after);
    const report = sums.report();
    this.#keep(key, report);
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
