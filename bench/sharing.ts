/**
 * Simulates how the rollouts of a run share its objects, second by second, without playing them: which object each gets
 * (`Shards`, as the run decides it) and when the alarm of each object hands over (as in src/kernel/rollout/object.ts).
 * An object is billed for the time in which any of its rollouts is in progress.
 */
import { Shards } from "../src/kernel/run/shards.ts";

export interface Work {
  readonly rollouts: number;
  readonly turns: number;
  readonly maxConcurrent: number;
  /** How many rollouts share an object at a time. */
  readonly perShard: number;
  /** The timeout of a call, in seconds. */
  readonly callTimeoutS: number;
  /** The seconds of the next turn. */
  readonly turnS: () => number;
}

/** Times are in seconds, everything else is counts. */
export interface Shared {
  /** From the first dispatch to the last end. */
  readonly runS: number;
  /** The sum over all rollouts, from the start of each to its end. */
  readonly rolloutS: number;
  /** The sum over all objects, while one of their rollouts is in progress. */
  readonly objectS: number;
  readonly objects: number;
  readonly alarms: number;
  /** How often a rollout was stored between two turns because an alarm handed over. */
  readonly handovers: number;
  /** Calls from objects to their run, and from the run to objects. */
  readonly reports: number;
  readonly starts: number;
  readonly asks: number;
  readonly rolloutsAsked: number;
  /** The seconds at which the run checks its rollouts. */
  readonly reconciliations: readonly number[];
  /** Ends that arrive together count as one: the second at which the run handles them, and how many there are. */
  readonly ends: readonly { readonly at: number; readonly count: number }[];
  /** Dispatches that are sent together: how many rollouts each has. */
  readonly dispatches: readonly number[];
}

/** No step begins that could end later than this after the start of the alarm. */
const ALARM_S = 14 * 60;
/** The longest time of a hook of a rollout that was not in progress before. */
const SETUP_S = 5 * 60;
/** The longest time between two checks of the reconciliation. */
const LONGEST_ASK_S = 10 * 60;
/** Ends are collected for this long before the next rollouts are dispatched. */
const GATHER_S = 0.01;
/** The delay of a queue and its consumer. Assumed. */
export const QUEUE_S = 1;
/** A rollout that has not reported is checked after this time, and then after twice as long. */
const FIRST_ASK_S = 5;

interface Playing {
  readonly host: number;
  left: number;
  startedAt: number;
  inTurn: boolean;
  /** The time at which the current call would time out. */
  silentUntil: number;
}

/** The pending events, and the current time. */
class Agenda {
  now = 0;
  #due: { readonly at: number; readonly act: () => void }[] = [];

  in(seconds: number, act: () => void): void {
    this.#due.push({ at: this.now + seconds, act });
  }

  run(): void {
    while (this.#due.length > 0) {
      const next = this.#due.reduce((first, one) => (one.at < first.at ? one : first));
      this.#due.splice(this.#due.indexOf(next), 1);
      this.now = next.at;
      next.act();
    }
  }
}

/** An object that plays rollouts, as src/kernel/rollout/object.ts does. */
class PlayingObject {
  seconds = 0;
  alarms = 0;
  handovers = 0;
  #begunAt: number | null = null;
  #playing = 0;
  #due: Playing[] = [];
  readonly #agenda: Agenda;
  readonly #work: Work;
  readonly #ended: (rollout: Playing) => void;

  constructor(agenda: Agenda, work: Work, ended: (rollout: Playing) => void) {
    this.#agenda = agenda;
    this.#work = work;
    this.#ended = ended;
  }

  start(rollouts: readonly Playing[]): void {
    this.#due.push(...rollouts);
    if (this.#begunAt === null) this.#alarm();
    else if (this.#mayBegin(Math.max(SETUP_S, this.#work.callTimeoutS))) this.#playDue();
  }

  #alarm(): void {
    this.alarms += 1;
    this.#begunAt = this.#agenda.now;
    this.#playDue();
  }

  #playDue(): void {
    for (const rollout of this.#due.splice(0)) {
      this.#playing += 1;
      this.#turn(rollout);
    }
  }

  #mayBegin(longestS: number): boolean {
    return this.#agenda.now + longestS <= (this.#begunAt ?? 0) + ALARM_S;
  }

  #turn(rollout: Playing): void {
    rollout.inTurn = true;
    rollout.silentUntil = this.#agenda.now + this.#work.callTimeoutS;
    this.#agenda.in(this.#work.turnS(), () => this.#answered(rollout));
  }

  #answered(rollout: Playing): void {
    rollout.left -= 1;
    if (rollout.left > 0 && this.#mayBegin(this.#work.callTimeoutS)) {
      this.#turn(rollout);
      return;
    }
    rollout.inTurn = false;
    this.#playing -= 1;
    if (rollout.left === 0) {
      this.#ended(rollout);
    } else {
      this.handovers += 1;
      this.#due.push(rollout);
    }
    if (this.#playing === 0) this.#handOver();
  }

  #handOver(): void {
    this.seconds += this.#agenda.now - (this.#begunAt ?? this.#agenda.now);
    this.#begunAt = null;
    if (this.#due.length > 0) this.#alarm();
  }
}

/** Plays nothing: only time passes. The same work and the same times give the same result. */
export function shareObjects(work: Work): Shared {
  return new SharingRun(work).run();
}

class SharingRun {
  readonly #work: Work;
  readonly #agenda = new Agenda();
  readonly #shards: Shards;
  readonly #objects = new Map<number, PlayingObject>();
  readonly #dispatches: number[] = [];
  readonly #ends: { at: number; count: number }[] = [];
  readonly #asked = new Set<string>();
  readonly #reconciliations = new Set<number>();
  #pending: number;
  #running = 0;
  #rolloutS = 0;
  #starts = 0;
  #reports = 0;
  #rolloutsAsked = 0;
  #gathered: Playing[] = [];

  constructor(work: Work) {
    this.#work = work;
    this.#shards = new Shards(work.perShard);
    this.#pending = work.rollouts;
  }

  run(): Shared {
    this.#dispatch();
    this.#agenda.run();
    const objects = [...this.#objects.values()];
    const sum = (of: (object: PlayingObject) => number) => objects.reduce((all, object) => all + of(object), 0);
    return {
      runS: this.#ends.at(-1)?.at ?? 0,
      rolloutS: this.#rolloutS,
      objectS: sum(({ seconds }) => seconds),
      objects: objects.length,
      alarms: sum(({ alarms }) => alarms),
      handovers: sum(({ handovers }) => handovers),
      reports: this.#reports,
      starts: this.#starts,
      asks: this.#asked.size,
      rolloutsAsked: this.#rolloutsAsked,
      reconciliations: [...this.#reconciliations],
      ends: this.#ends,
      dispatches: this.#dispatches,
    };
  }

  #dispatch(): void {
    const count = Math.min(this.#work.maxConcurrent - this.#running, this.#pending);
    if (count === 0) return;
    this.#pending -= count;
    this.#running += count;
    this.#dispatches.push(count);
    const rollouts = Array.from({ length: count }, () => this.#placed());
    for (const rollout of rollouts) this.#askIn(FIRST_ASK_S, rollout, 0);
    this.#agenda.in(QUEUE_S, () => this.#start(rollouts));
  }

  #placed(): Playing {
    const shard = this.#shards.take(() => this.#objects.size + 1, this.#work.perShard);
    if (!this.#objects.has(shard)) {
      const object = new PlayingObject(this.#agenda, this.#work, (rollout) => this.#hear(rollout));
      this.#objects.set(shard, object);
    }
    return { host: shard, left: this.#work.turns, startedAt: 0, inTurn: false, silentUntil: 0 };
  }

  #start(rollouts: readonly Playing[]): void {
    for (const [shard, of] of Map.groupBy(rollouts, (rollout) => rollout.host)) {
      this.#starts += 1;
      for (const rollout of of) rollout.startedAt = this.#agenda.now;
      this.#objects.get(shard)?.start(of);
    }
  }

  /**
   * A running rollout is checked again when its call would time out, one that waits for its object after twice as long.
   */
  #askIn(seconds: number, rollout: Playing, asks: number): void {
    this.#agenda.in(seconds, () => {
      if (rollout.left === 0) return;
      const { now } = this.#agenda;
      this.#reconciliations.add(now);
      this.#asked.add(`${now}/${rollout.host}`);
      this.#rolloutsAsked += 1;
      const again = FIRST_ASK_S * 2 ** asks;
      const silent = rollout.inTurn ? rollout.silentUntil - now : 0;
      this.#askIn(Math.min(LONGEST_ASK_S, Math.max(again, silent)), rollout, asks + 1);
    });
  }

  #hear(rollout: Playing): void {
    this.#rolloutS += this.#agenda.now - rollout.startedAt;
    this.#gathered.push(rollout);
    if (this.#gathered.length === 1) this.#agenda.in(GATHER_S, () => this.#takeIn());
  }

  #takeIn(): void {
    const ended = this.#gathered.splice(0);
    this.#running -= ended.length;
    this.#reports += new Set(ended.map(({ host: shard }) => shard)).size;
    this.#ends.push({ at: this.#agenda.now, count: ended.length });
    for (const { host: shard } of ended) this.#shards.leave(shard);
    this.#dispatch();
  }
}
