/**
 * What a run sends to the shared queues, and what of it waits: of each kind so many messages are in its queue at once as
 * the run's share allows. What was sent and is lost is sent again beside that, in the place of the lost.
 *
 * Lost with the memory, found by the sweep.
 */

import { Subrequests } from "../kit/subrequests.ts";
import type { JudgementMessage, RolloutSlot, RunSpec } from "../messages/wire.ts";
import { InQueue } from "./in-queue.ts";
import {
  groupsMessages,
  judgementMessages,
  PLACES_PER_MESSAGE,
  scoresMessages,
  sendAll,
  sendJudgements,
  unitsPerMessage,
} from "./queues.ts";
import type { RunStore } from "./store.ts";
import { waitingRows } from "./units.ts";

export type JudgementOrder = Pick<JudgementMessage, "unit" | "pace">;

export class Outbox {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  #places: RolloutSlot[] = [];
  readonly #units = new Set<number>();
  readonly #segments = new Set<number>();
  #judging: JudgementOrder[] = [];
  readonly #starting = new InQueue<string>();
  readonly #scoring = new InQueue<number>();
  readonly #folding = new InQueue<number>();
  /** Messages of each kind, as it was last allowed. */
  #share = 0;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
  }

  toStart(places: readonly RolloutSlot[]): void {
    this.#places.push(...places);
  }

  toScore(units: readonly number[]): void {
    for (const unit of units) this.#units.add(unit);
  }

  toFold(segment: number): void {
    this.#segments.add(segment);
  }

  toJudge(order: JudgementOrder): void {
    this.#judging.push(order);
  }

  /** Whether the unit waits here for its turn: that it is silent says nothing. */
  holds(unit: number): boolean {
    return this.#units.has(unit);
  }

  /** The message that names these was taken. True where its place was waited for. */
  started(places: readonly RolloutSlot[]): boolean {
    const full = this.#starting.count >= this.#share;
    this.#starting.taken(places.map(keyOf));
    return full;
  }

  /** The segment is folded. True where its place was waited for, and for the last: the run may have no more to send. */
  folded(segment: number): boolean {
    this.#folding.taken([segment]);
    return this.#segments.size > 0 || this.#folding.count === 0;
  }

  /** Rollouts that may be dispatched: as many as can be sent at once. `share`: messages. */
  roomToStart(share: number): number {
    if (this.#starting.count >= share) this.#forget();
    return Math.max(0, (share - this.#starting.count) * PLACES_PER_MESSAGE - this.#places.length);
  }

  /** Messages in the queue that has the most of them. With nothing in flight, a lost one is awaited by nobody. */
  inQueue(): number {
    if (this.#store.head().in_flight === 0) this.#forget();
    return Math.max(this.#starting.count, this.#scoring.count, this.#folding.count);
  }

  /** Messages that wait, of the kind of which most do. `startable`: rollouts that could be dispatched. */
  waiting(spec: RunSpec, startable: number): number {
    const starts = Math.ceil(startable / PLACES_PER_MESSAGE);
    return Math.max(starts, Math.ceil(this.#units.size / unitsPerMessage(spec)), this.#segments.size);
  }

  /** Sends what has gathered, as far as `share` messages of each kind go; judgements were counted before. */
  async send(spec: RunSpec, share: number): Promise<void> {
    this.#share = share;
    if (this.#scoring.count >= share || this.#folding.count >= share) this.#forget();
    const { scope, run_id } = spec;
    const groups = groupsMessages(spec, this.#places.splice(0), this.#now());
    for (const { rollouts } of groups) {
      this.#starting.sent(rollouts.map(([group, slot, attempt]) => keyOf({ group, slot, attempt })));
    }
    const scores = scoresMessages(spec, take(this.#units, this.#scoring, share, unitsPerMessage(spec)));
    for (const { units } of scores) this.#scoring.sent(units);
    const segments = take(this.#segments, this.#folding, share, 1);
    for (const segment of segments) this.#folding.sent([segment]);
    const folds = segments.map((segment) => ({ kind: "segment" as const, scope, run_id, segment }));
    const judgements = judgementMessages(spec, this.#judging.splice(0));
    const subrequests = new Subrequests();
    await Promise.all([
      sendJudgements(this.#env, judgements, subrequests),
      sendAll(this.#env.ROLLOUT_GROUPS, groups, subrequests),
      sendAll(this.#env.ROLLOUT_SCORES, scores, subrequests),
      sendAll(this.#env.RUN_SEGMENTS, folds, subrequests),
    ]);
  }

  /** What ended without being heard of is in no queue that anybody waits for. */
  #forget(): void {
    const spec = this.#store.spec();
    if (spec === null) return;
    this.#starting.prune((key) => this.#store.rollout(placeOf(key))?.status === "running");
    this.#scoring.prune((unit) => {
      return this.#store.judging.unit(unit) === null && waitingRows(this.#store, spec, unit).length > 0;
    });
    this.#folding.prune((segment) => this.#store.segment(segment)?.key === null);
  }
}

/** Takes out what is sent now: what is sent again goes beside the share, what is new within it. */
function take(waiting: Set<number>, queue: InQueue<number>, share: number, perMessage: number): number[] {
  const again = [...waiting].filter((key) => queue.has(key));
  const room = Math.max(0, share - queue.count) * perMessage;
  const first = [...waiting].filter((key) => !queue.has(key)).slice(0, room);
  for (const key of [...again, ...first]) waiting.delete(key);
  return [...again, ...first];
}

function keyOf({ group, slot, attempt }: RolloutSlot): string {
  return `${group}/${slot}/${attempt}`;
}

function placeOf(key: string): RolloutSlot {
  const [group = 0, slot = 0, attempt = 0] = key.split("/").map(Number);
  return { group, slot, attempt };
}
