/**
 * Work of an environment that may have ended the process: a hook or a scoring function that computes without end, or that
 * takes the process down. No code inside an isolate can stop it, and after a restart the same work is taken up again.
 *
 * Invariants. Where nothing died nothing is written and nobody waits. After a death everything that had not ended in the
 * process before is a suspect, and suspects compute one at a time: each is named on disk, by its run, before it computes and
 * until it awaits the outside or ends; where deaths go on all the same, until it ends, save deaths by a kill from outside,
 * which nothing that waits has any part in. So whoever is named when the process dies was alone. Two such deaths, after the
 * one that made it a suspect, and it is given up; a death while nobody is named counts against nobody. Deployed, only an
 * alarm that is repeated makes suspects, of the rollouts that it plays: what a consumer cannot finish its queue and the
 * sweep give up.
 */
import type { OfferedForScoring } from "../../core/environments/capabilities.ts";
import type { SqlRunner } from "../../core/environments/rollout-sql.ts";
import { type LogIds, logError } from "../kit/log.ts";
import { retry } from "../kit/retry.ts";
import type { SuspectKey } from "../messages/wire.ts";

interface LocalEnv extends Env {
  readonly LAST_END?: Fetcher;
}

/** How the processes before this one ended, one soon after the other. */
export interface LastEnd {
  /** Of how many nobody says that they were stopped in order: they died, hung until they were ended, or were killed. */
  readonly deaths: number;
  /** How many of these died or hung by what they did themselves. */
  readonly byItself: number;
}

const IN_ORDER: LastEnd = { deaths: 0, byItself: 0 };

let told: LastEnd | undefined;

let boot: string | undefined;

type SuspectRow = { deaths: number; boot: string | null };

/** Who keeps the names: the run of a suspect (rpc.ts), or the store (code-behind-route.ts). */
export interface Names<Key extends string = SuspectKey> {
  /** Null: it is given up. `died`: the process before did. */
  accuse(key: Key, boot: string, died: boolean): Promise<{ readonly deaths: number } | null>;
  clear(key: Key, ended: boolean): Promise<void>;
}

/** In how many deaths it was named, and the process in which it is at this moment. */
export interface NamedEntry {
  readonly deaths: number;
  readonly boot: string | null;
}

/** Deaths in which it was named, after the one that made it a suspect, that end it. */
export const MOST_DEATHS = 2;
export const GIVEN_UP = Symbol("given up");

/** Deaths by itself, one soon after the other, after which a suspect is named when it goes on behind a `can.fetch`, too; */
const DEATHS_BEHIND_FETCH = 2;
/** and after which it is named until it ends, whatever it awaits, for so long at most: nothing less found it out. */
export const DEATHS_TO_THE_END = 4;
const NAMED_AT_MOST_MS = 10_000;

/** A holder of the turn that is not heard of so long is gone: its object was taken out of memory. */
const HELD_AT_MOST_MS = 60_000;
const LONGEST_LOOK_MS = 250;

/** Until when somebody computes (0: nobody), and how many wait. All objects and consumers of a process share an isolate. */
let heldUntil = 0;
let waiting = 0;

/** By looking again and again: a promise that another object resolves would look like no work at all to the runtime. */
async function takeTurn(): Promise<() => void> {
  waiting += 1;
  while (Date.now() < heldUntil) await scheduler.wait(Math.min(LONGEST_LOOK_MS, 2 * waiting));
  waiting -= 1;
  const until = Date.now() + HELD_AT_MOST_MS;
  heldUntil = until;
  return () => {
    if (heldUntil === until) heldUntil = 0;
  };
}

/** For work that is no suspect: it computes when no suspect does, so that nobody is blamed for it. */
export async function besideSuspects<T>(work: () => Promise<T>): Promise<T> {
  if (heldUntil === 0) return await work();
  const release = await takeTurn();
  const running = work();
  running.catch(() => undefined);
  await scheduler.wait(0);
  release();
  return await running;
}

export class Suspect<Key extends string = SuspectKey> {
  readonly #env: Env;
  readonly #run: () => Names<Key>;
  readonly #key: Key;
  readonly #stretches = new Set<Promise<void>>();
  /** What the platform itself computes for it at this moment. */
  readonly #computing = new Set<Promise<unknown>>();
  readonly #ids: LogIds;
  readonly #died: boolean;
  #deaths = 0;
  #isNamed = false;
  #runs = false;

  /** `ids`: of what it is part, for the log. `died`: whoever asks knows that the process before died, though nobody counts deaths: its alarm is repeated. */
  constructor(env: Env, run: () => Names<Key>, key: Key, ids: LogIds = {}, died = false) {
    this.#env = env;
    this.#run = run;
    this.#key = key;
    this.#ids = { ...ids, suspect: key };
    this.#died = died;
  }

  /**
   * Runs `work` alone in the process, until it awaits the outside; then others go on. `GIVEN_UP`: it must not run again. What
   * counts against it counts on until `end`.
   */
  async run<T>(work: () => Promise<T>): Promise<T | typeof GIVEN_UP> {
    const release = await this.#named();
    if (release === null) return GIVEN_UP;
    this.#runs = true;
    try {
      const running = work();
      await this.#untilItWaits(running, release);
      return await running;
    } finally {
      this.#runs = false;
      await Promise.all(this.#stretches);
    }
  }

  /** What it did is on disk: nobody will do it again. */
  async end(): Promise<void> {
    if (this.#deaths > 0) await this.#clear(true);
  }

  /** A call of the work that the platform answers by computing, as a query is: it goes on being named. */
  async computing<T>(call: () => Promise<T>): Promise<T> {
    if (!this.#runs) return await call();
    const answer = call();
    this.#computing.add(answer);
    try {
      return await answer;
    } finally {
      this.#computing.delete(answer);
    }
  }

  /**
   * A call of the work that the outside answers: others compute meanwhile. When it goes on it is named again, if the
   * process died more than once: then what ended it may come behind such a call.
   */
  async awaiting<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } finally {
      const release = await this.#namedAgain();
      if (release !== null) this.#stretches.add(this.#untilItWaits(undefined, release));
    }
  }

  /** The rollout's database as the work gets it. */
  watchedSql(sql: SqlRunner): SqlRunner {
    return { exec: (...call) => this.computing(async () => await sql.exec(...call)) };
  }

  watchedCapabilities<Offered extends OfferedForScoring>(offered: Offered): Offered {
    const { fetch } = offered;
    if (fetch === undefined) return offered;
    return { ...offered, fetch: (...call) => this.awaiting(() => fetch(...call)) };
  }

  /** Its work goes on whatever comes of this: null where it goes on unnamed. */
  async #namedAgain(): Promise<(() => void) | null> {
    try {
      const { byItself } = await lastEnd(this.#env);
      if (!this.#runs || this.#isNamed || byItself < DEATHS_BEHIND_FETCH) return null;
      return await this.#named();
    } catch (thrown) {
      logError("a suspect goes on unnamed", this.#ids, thrown);
      return null;
    }
  }

  /** The result of its work must not be lost for it: one that stays named has at most a death too many to its name. */
  async #clear(ended: boolean): Promise<void> {
    try {
      await retry(() => this.#run().clear(this.#key, ended));
    } catch (thrown) {
      logError("a suspect stays named", this.#ids, thrown);
    }
  }

  /** Null when its run gives it up. */
  async #named(): Promise<(() => void) | null> {
    const release = await takeTurn();
    try {
      const died = this.#died || (await lastEnd(this.#env)).deaths > 0;
      const accused = await retry(() => this.#run().accuse(this.#key, bootId(), died));
      if (accused === null) {
        release();
        return null;
      }
      this.#deaths = accused.deaths;
      this.#isNamed = true;
      return () => {
        this.#isNamed = false;
        release();
      };
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  /** Everything that can go on without the outside has gone on once a timer fires. */
  async #untilItWaits(running: Promise<unknown> | undefined, release: () => void): Promise<void> {
    // Whoever runs it hears of what it throws.
    running?.catch(() => undefined);
    try {
      const { byItself } = await lastEnd(this.#env);
      if (running !== undefined && byItself >= DEATHS_TO_THE_END) {
        await Promise.race([Promise.allSettled([running]), scheduler.wait(NAMED_AT_MOST_MS)]);
      }
      do {
        await Promise.allSettled(this.#computing);
        await scheduler.wait(0);
      } while (this.#computing.size > 0);
      await this.#clear(false);
    } finally {
      release();
    }
  }
}

/** In how many deaths it was the one that was named, as the process `by` asks for it. */
export function deathsOf(known: NamedEntry | null, by: { readonly boot: string; readonly died: boolean }): number {
  if (known === null) return 0;
  const wasNamed = known.boot !== null && known.boot !== by.boot;
  return known.deaths + (wasNamed && by.died ? 1 : 0);
}

/** Why a suspect was given up; `during`: what it did each time, as a sentence. */
export function stoppedPlatform(during: string): string {
  return `the platform crashed or hung ${MOST_DEATHS + 1} times while ${during}: it is not tried again`;
}

/** Suspects of a run (src/kernel/run/suspects.ts), in its own SQLite. `boot`: the process in which it is named at this moment. */
export class SuspectStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  find(key: SuspectKey): NamedEntry | null {
    const found = "select deaths, boot from suspects where key = ?";
    return this.#sql.exec<SuspectRow>(found, key).toArray()[0] ?? null;
  }

  name(key: SuspectKey, boot: string | null, deaths: number): void {
    this.#sql.exec("insert or replace into suspects values (?, ?, ?)", key, deaths, boot);
  }

  drop(key: SuspectKey): void {
    this.#sql.exec("delete from suspects where key = ?", key);
  }
}

/**
 * How the process before this one ended. Locally whoever starts workerd knows, and says so through LAST_END; a deployment
 * has no such binding, and an alarm that is repeated says it of its own object alone.
 */

/** Answered once the platform is through its boot: whoever asks is about to do what may have ended the process before. */
export async function lastEnd(env: LocalEnv): Promise<LastEnd> {
  if (told !== undefined || env.LAST_END === undefined) return told ?? IN_ORDER;
  const reply = await env.LAST_END.fetch("http://last-end/");
  told = await reply.json<LastEnd>();
  return told;
}

/** This process (deployed: this isolate), and no other. */
export function bootId(): string {
  boot ??= crypto.randomUUID();
  return boot;
}
