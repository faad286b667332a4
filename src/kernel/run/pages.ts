/** Pages of a run for its readers: rollouts that have ended, and events. */
import { LIMITS } from "../../contract/limits.ts";
import type { FinishedPage } from "../messages/rpc.ts";
import type {
  LiveView,
  RolloutEntry,
  RolloutLeft,
  RolloutRecord,
  SegmentEntry,
  StoredEvent,
} from "../messages/run-records.ts";
import type { RolloutSlot, RunSpec } from "../messages/wire.ts";
import { advantagesIn } from "./advantages.ts";
import type { RunStore } from "./store.ts";

/** How many segments one page of results may need: each is read whole. */
const SEGMENTS_PER_PAGE = 10;

export function recordIn(
  store: RunStore,
  entry: RolloutEntry,
  advantages: ReadonlyMap<number, number> = NONE,
): RolloutRecord {
  const advantage = advantages.get(entry.seq);
  const record = { entry, text: store.trajectory(entry.seq) };
  return advantage === undefined ? record : { ...record, advantage };
}

/** The rollout in this slot, with its current advantage; null if it was never dispatched. */
export function rolloutRecord(store: RunStore, spec: RunSpec, place: RolloutSlot): RolloutRecord | null {
  const row = store.rollout(place);
  return row && recordIn(store, row, advantagesIn(store, spec, [row]));
}

const NONE: ReadonlyMap<number, number> = new Map();

/** Which ended rollouts a page has. */
interface Finished {
  readonly after: number;
  readonly limit: number;
  readonly outcome: string | null;
  /** With the calls of their judges. */
  readonly judged?: boolean;
}

/** As many ended rollouts as one reply between objects may carry. `most`: stored bytes of their trajectories. */
export function finishedPage(
  store: RunStore,
  spec: RunSpec,
  { after, limit, outcome, judged = false }: Finished,
  most: number = LIMITS.pageBytes,
): FinishedPage {
  const found = store.finished(after, limit, outcome, judged);
  const advantages = advantagesIn(store, spec, found);
  const rows: RolloutRecord[] = [];
  let [held, bytes] = [0, 0];
  for (const row of found) {
    const record = recordIn(store, row, advantages);
    held += (record.text?.length ?? 0) + (row.judgements?.length ?? 0);
    bytes += row.bytes;
    const over = held > LIMITS.inlinePageBytes || bytes > most;
    if (over && rows.length > 0) break;
    rows.push(record);
  }
  const page = pageOf(rows, found.length, store.segmentsAfter(after, LIMITS.resultsPerPage));
  return { ...page, settled: store.head().books.ends };
}

/** The rows to compact into a segment; null if it is compacted already, or was never cut. */
export function uncompactedRows(store: RunStore, segment: number): RolloutLeft[] | null {
  const entry = store.segment(segment);
  return entry === null || entry.key !== null ? null : store.leftIn(entry);
}

/** The rows that can be answered from the page's first segments and from the run itself. */
function pageOf(rows: readonly RolloutRecord[], found: number, segments: readonly SegmentEntry[]): FinishedPage {
  const seqOf = ({ entry }: RolloutRecord) => entry.finish_seq ?? 0;
  const needed = segments.filter(({ first_seq, last_seq }) =>
    rows.some((row) => seqOf(row) >= first_seq && seqOf(row) <= last_seq),
  );
  const beyond = needed[SEGMENTS_PER_PAGE]?.first_seq ?? Number.POSITIVE_INFINITY;
  const page = rows.filter((row) => seqOf(row) < beyond);
  return {
    rows: page,
    cut: page.length < found,
    segments: needed.slice(0, SEGMENTS_PER_PAGE),
  };
}

const EVENTS_PER_READ = 1000;

/** Events after `after`. `ended`: no event will follow. */
export function eventsAfter(
  store: RunStore,
  after: number,
  view: () => Pick<LiveView, "counts" | "status">,
): { events: StoredEvent[]; ended: boolean } {
  const stored = store.events(after, EVENTS_PER_READ);
  const head = store.head();
  const ended = head.settled_at !== null && (stored.at(-1)?.id ?? after) >= head.last_event;
  const oldest = stored[0];
  if (oldest === undefined || oldest.id === after + 1) return { events: stored, ended };
  // The reader needs events that are deleted: it gets a snapshot of the run's state instead.
  const { counts, status } = view();
  const snapshot = { id: oldest.id - 1, event: "snapshot" as const, data: { status, counts } };
  return { events: [snapshot, ...stored], ended };
}

/** Readers that wait for the next event. */
export class WaitingReaders {
  #wakes: (() => void)[] = [];

  /** Resolves at the next `wake` (true), or after that many milliseconds (false). */
  next(waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wakes = this.#wakes.filter((other) => other !== wake);
        resolve(false);
      }, waitMs);
      const wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
      this.#wakes.push(wake);
    });
  }

  wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }
}
