/** Events of a run as a reader gets them. */

import type { LiveView, StoredEvent } from "../contract/run-records.ts";
import type { RunStore } from "./store.ts";

const EVENTS_PER_READ = 1000;

/** Those after `after`, and whether nothing will follow them. */
export function eventsAfter(
  store: RunStore,
  after: number,
  view: () => LiveView,
): { events: StoredEvent[]; ended: boolean } {
  const stored = store.events(after, EVENTS_PER_READ);
  const head = store.head();
  const ended = head.settled_at !== null && (stored.at(-1)?.id ?? after) >= head.last_event;
  const oldest = stored[0];
  if (oldest === undefined || oldest.id === after + 1) return { events: stored, ended };
  // The reader is further behind than the events kept: it gets where the run stands instead.
  const { counts, status } = view();
  const snapshot = { id: oldest.id - 1, event: "snapshot" as const, data: { status, counts } };
  return { events: [snapshot, ...stored], ended };
}

/** Readers that wait for something to happen. */
export class WaitingReaders {
  #wakes: (() => void)[] = [];

  /** Until the next `wake` (true), or so many milliseconds (false). */
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
