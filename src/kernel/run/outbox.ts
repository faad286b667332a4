/**
 * What a run sends to the shared queues, and what waits to be sent. The run's lease limits how many messages of each
 * kind are in their queue at once. A message that is sent again takes the place of the lost one.
 *
 * All of it is in memory only. After a restart reconciliation finds what was lost.
 */

import { Subrequests } from "../kit/subrequests.ts";
import type { JudgementMessage, RolloutSlot, RunSpec } from "../messages/wire.ts";
import { maxConcurrentOf } from "./control.ts";
import { gatherersOf } from "./gathering.ts";
import { InQueue } from "./in-queue.ts";
import {
  groupsMessages,
  groupsQueue,
  judgementMessages,
  PLACES_PER_MESSAGE,
  scoresMessages,
  scoresQueue,
  scoringGroupsPerMessage,
  sendAll,
  sendJudgements,
} from "./queues.ts";
import { waitingRows } from "./scoring-groups.ts";
import type { RunStore } from "./store.ts";

export type JudgementOrder = Pick<JudgementMessage, "unit" | "pace">;

export class Outbox {
  readonly #env: Env;
  readonly #store: RunStore;
  readonly #now: () => number;
  #places: RolloutSlot[] = [];
  readonly #scoringGroups = new Set<number>();
  readonly #segments = new Set<number>();
  #judging: JudgementOrder[] = [];
  readonly #starting = new InQueue<string>();
  readonly #scoring = new InQueue<number>();
  readonly #folding = new InQueue<number>();
  /** How many messages of each kind the lease allowed at the last send. */
  #quota = 0;

  constructor(env: Env, store: RunStore, now: () => number) {
    this.#env = env;
    this.#store = store;
    this.#now = now;
  }

  toStart(places: readonly RolloutSlot[]): void {
    this.#places.push(...places);
  }

  toScore(scoringGroups: readonly number[]): void {
    for (const scoringGroup of scoringGroups) this.#scoringGroups.add(scoringGroup);
  }

  toCompact(segment: number): void {
    this.#segments.add(segment);
  }

  toJudge(order: JudgementOrder): void {
    this.#judging.push(order);
  }

  /** True if the scoring group still waits here to be sent: its silence means nothing then. */
  holds(scoringGroup: number): boolean {
    return this.#scoringGroups.has(scoringGroup);
  }

  /** The message with these slots was taken. True if something waited for its place in the queue. */
  started(places: readonly RolloutSlot[]): boolean {
    const full = this.#starting.count >= this.#quota;
    this.#starting.taken(places.map(keyOf));
    return full;
  }

  /** The segment is compacted. True if something waited for its place, or it was the last: the run may be finished. */
  folded(segment: number): boolean {
    this.#folding.taken([segment]);
    return this.#segments.size > 0 || this.#folding.count === 0;
  }

  /** Rollouts that may be dispatched: as many as can be sent at once. `share`: the lease, in messages. */
  remainingToStart(quota: number): number {
    if (this.#starting.count >= quota) this.#forget();
    return Math.max(0, (quota - this.#starting.count) * PLACES_PER_MESSAGE - this.#places.length);
  }

  /** Messages in the fullest queue. With nothing in flight, a lost message is no longer awaited. */
  inQueue(): number {
    if (this.#store.head().in_flight === 0) this.#forget();
    return Math.max(this.#starting.count, this.#scoring.count, this.#folding.count);
  }

  /** Messages that wait, of the kind with the most. `startable`: rollouts that could be dispatched. */
  waiting(spec: RunSpec, startable: number): number {
    const starts = Math.ceil(startable / PLACES_PER_MESSAGE);
    return Math.max(starts, Math.ceil(this.#scoringGroups.size / scoringGroupsPerMessage(spec)), this.#segments.size);
  }

  /** Sends what was collected, up to `share` messages of each kind. Judgements were limited before. */
  async send(spec: RunSpec, quota: number): Promise<void> {
    this.#quota = quota;
    if (this.#scoring.count >= quota || this.#folding.count >= quota) this.#forget();
    const { scope, run_id } = spec;
    const gatherers = gatherersOf(this.#env, maxConcurrentOf(spec, this.#store.head()));
    const groups = groupsMessages(spec, this.#places.splice(0), this.#now(), gatherers);
    for (const { rollouts } of groups) {
      this.#starting.sent(rollouts.map(([group, slot, attempt]) => keyOf({ group, slot, attempt })));
    }
    const toScore = take(this.#scoringGroups, this.#scoring, quota, scoringGroupsPerMessage(spec));
    const scores = scoresMessages(spec, toScore, gatherers);
    for (const { units: scoringGroups } of scores) this.#scoring.sent(scoringGroups);
    const segments = take(this.#segments, this.#folding, quota, 1);
    for (const segment of segments) this.#folding.sent([segment]);
    const folds = segments.map((segment) => ({ kind: "segment" as const, scope, run_id, segment }));
    const judgements = judgementMessages(spec, this.#judging.splice(0), gatherers);
    const subrequests = new Subrequests();
    await Promise.all([
      sendJudgements(this.#env, judgements, subrequests),
      sendAll(groupsQueue(this.#env, spec), groups, subrequests),
      sendAll(scoresQueue(this.#env, { run_id }), scores, subrequests),
      sendAll(this.#env.RUN_SEGMENTS, folds, subrequests),
    ]);
  }

  /** Forgets messages whose work has ended without an acknowledgement: they are no longer awaited. */
  #forget(): void {
    const spec = this.#store.spec();
    if (spec === null) return;
    this.#starting.prune((key) => this.#store.rollout(placeOf(key))?.status === "running");
    this.#scoring.prune((scoringGroup) => {
      return (
        this.#store.judging.scoringGroup(scoringGroup) === null &&
        waitingRows(this.#store, spec, scoringGroup).length > 0
      );
    });
    this.#folding.prune((segment) => this.#store.segment(segment)?.key === null);
  }
}

/** Takes out what is sent now. What is sent again does not count against the lease; what is new does. */
function take(waiting: Set<number>, queue: InQueue<number>, quota: number, perMessage: number): number[] {
  const again = [...waiting].filter((key) => queue.has(key));
  const remaining = Math.max(0, quota - queue.count) * perMessage;
  const first = [...waiting].filter((key) => !queue.has(key)).slice(0, remaining);
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
