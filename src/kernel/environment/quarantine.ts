/**
 * Quarantine for environment code that may have ended the process: a hook or a scoring function that computes without
 * end, or that crashes the process. No code inside an isolate can stop it, and after a restart the same work would
 * start again.
 *
 * Invariants. If nothing died, nothing is written and no work waits. After a death, all work that had not ended in the
 * previous process is quarantined, and quarantined work computes one at a time. Its run records each piece on disk
 * before it computes, and until it awaits an outside call or ends. If deaths continue, the record stays until it ends.
 * (A kill from outside does not count for that, because waiting work cannot cause it.) So the recorded work was the
 * only one computing when the process died. After two such deaths, following the one that caused the quarantine, the
 * work is given up. A death while nothing is recorded counts against no work. In production, only an alarm that is
 * repeated starts a quarantine, for the rollouts that its object plays. What a consumer cannot finish is given up by
 * its queue and the reconciliation.
 */
import type { SqlRunner } from "../../core/environments/rollout-sql.ts";
import type { RolloutHost } from "../../core/protocol/environment-code.ts";
import { type LogIds, logError } from "../kit/log.ts";
import { retry } from "../kit/retry.ts";
import type { QuarantineKey } from "../messages/wire.ts";

interface LocalEnv extends Env {
  readonly LAST_END?: Fetcher;
}

/** How the processes before this one ended, if they ended shortly one after the other. */
export interface LastEnd {
  /** How many were not stopped in an orderly way: they died, hung until they were ended, or were killed. */
  readonly deaths: number;
  /** How many of these died or hung because of their own work. */
  readonly byItself: number;
}

const IN_ORDER: LastEnd = { deaths: 0, byItself: 0 };

let known: LastEnd | undefined;

let boot: string | undefined;

type QuarantineRow = { deaths: number; boot: string | null };

/** Who stores the records: the run of the work (rpc.ts), or the store (code-behind-route.ts). */
export interface Names<Key extends string = QuarantineKey> {
  /** Null: the work is given up. `died`: the previous process died. */
  admitToQuarantine(key: Key, boot: string, died: boolean): Promise<{ readonly deaths: number } | null>;
  clear(key: Key, ended: boolean): Promise<void>;
}

/** In how many deaths the work was recorded, and the process in which it is recorded now. */
export interface NamedEntry {
  readonly deaths: number;
  readonly boot: string | null;
}

/**
 * The work is given up after this many deaths in which it was recorded, not counting the one that caused the
 * quarantine.
 */
export const MOST_DEATHS = 2;
export const GIVEN_UP = Symbol("given up");

/** After this many deaths by own work in a row, work is recorded again when it continues after a `can.fetch`. */
const DEATHS_BEHIND_FETCH = 2;
/** After this many it is recorded until it ends, whatever it awaits, but for at most `NAMED_AT_MOST_MS`. */
export const DEATHS_TO_THE_END = 4;
const NAMED_AT_MOST_MS = 10_000;

/** A holder of the turn that was not seen for this long is gone: its object was evicted from memory. */
const HELD_AT_MOST_MS = 60_000;
const LONGEST_LOOK_MS = 250;
/** An organisation that did not poll for this long loses its place. Work that still waits gets a new place. */
const GONE_MS = 1000;

/** Until when some work computes (0: none). All objects and consumers of a process share an isolate. */
let heldUntil = 0;
/** How much work of each organisation waits. */
const waiting = new Map<string, number>();
/** When waiting work of each organisation last polled. The first organisation is next; after its turn it is the last. */
const line = new Map<string, number>();

/** Polls: if it awaited a promise that another object resolves, the runtime would see no work in progress. */
async function takeTurn(org: string): Promise<() => void> {
  const count = () => waiting.get(org) ?? 0;
  waiting.set(org, count() + 1);
  while (!isNext(org, Date.now())) await scheduler.wait(Math.min(LONGEST_LOOK_MS, 2 * count()));
  line.delete(org);
  if (count() > 1) waiting.set(org, count() - 1);
  else waiting.delete(org);
  const until = Date.now() + HELD_AT_MOST_MS;
  heldUntil = until;
  return () => {
    if (heldUntil === until) heldUntil = 0;
  };
}

/** Adds the organisation to the line if it is not there. */
function isNext(org: string, now: number): boolean {
  line.set(org, now);
  if (now < heldUntil) return false;
  for (const [first, polledAt] of line) {
    if (first === org) return true;
    if (now - polledAt <= GONE_MS) return false;
    line.delete(first);
  }
  return false;
}

/**
 * For work that is not quarantined: it computes while no quarantined work does, so that a death is not blamed on that.
 */
export async function outsideQuarantine<T>(org: string, work: () => Promise<T>): Promise<T> {
  if (heldUntil === 0) return await work();
  const release = await takeTurn(org);
  const running = work();
  running.catch(() => undefined);
  await scheduler.wait(0);
  release();
  return await running;
}

export class Quarantine<Key extends string = QuarantineKey> {
  readonly #env: Env;
  readonly #run: () => Names<Key>;
  readonly #key: Key;
  readonly #spans = new Set<Promise<void>>();
  /** What the platform itself computes for it now. */
  readonly #computing = new Set<Promise<unknown>>();
  readonly #ids: LogIds;
  readonly #died: boolean;
  #deaths = 0;
  #isNamed = false;
  #runs = false;

  /**
   * `ids`: for the log. `died`: the caller knows that the previous process died, because its alarm is repeated; in
   * production deaths are not counted.
   */
  constructor(env: Env, run: () => Names<Key>, key: Key, ids: LogIds = {}, died = false) {
    this.#env = env;
    this.#run = run;
    this.#key = key;
    this.#ids = { ...ids, quarantine: key };
    this.#died = died;
  }

  /**
   * Runs `work` alone in the process until it awaits an outside call; then other work continues. `GIVEN_UP`: it must
   * not run again. The deaths recorded against it stay until `end`.
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
      await Promise.all(this.#spans);
    }
  }

  /** The result of the work is on disk, so it will not run again. */
  async end(): Promise<void> {
    if (this.#deaths > 0) await this.#clear(true);
  }

  /** A call of the work that the platform answers by computing, such as a query. The work stays recorded. */
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
   * A call of the work that something outside answers: other work computes meanwhile. When it continues, it is recorded
   * again if the process died more than once, because the fault may come after such a call.
   */
  async awaiting<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } finally {
      const release = await this.#namedAgain();
      if (release !== null) this.#spans.add(this.#untilItWaits(undefined, release));
    }
  }

  /** The rollout's database, as the work gets it. */
  watchedSql(sql: SqlRunner): SqlRunner {
    return { exec: (...call) => this.computing(async () => await sql.exec(...call)) };
  }

  watchedFetch(fetch: RolloutHost["fetch"]): RolloutHost["fetch"] {
    return (...call) => this.awaiting(() => fetch(...call));
  }

  /** The work continues whatever happens here: null if it continues without a record. */
  async #namedAgain(): Promise<(() => void) | null> {
    try {
      const { byItself } = await lastEnd(this.#env);
      if (!this.#runs || this.#isNamed || byItself < DEATHS_BEHIND_FETCH) return null;
      return await this.#named();
    } catch (thrown) {
      logError("quarantined work goes on unnamed", this.#ids, thrown);
      return null;
    }
  }

  /** A failure here must not lose the work's result. If the record stays, the work has at most one death too many. */
  async #clear(ended: boolean): Promise<void> {
    try {
      await retry(() => this.#run().clear(this.#key, ended));
    } catch (thrown) {
      logError("quarantined work stays named", this.#ids, thrown);
    }
  }

  /** Null if its run gives it up. */
  async #named(): Promise<(() => void) | null> {
    const release = await takeTurn(this.#ids.org_id ?? "");
    try {
      const died = this.#died || (await lastEnd(this.#env)).deaths > 0;
      const admission = await retry(() => this.#run().admitToQuarantine(this.#key, bootId(), died));
      if (admission === null) {
        release();
        return null;
      }
      this.#deaths = admission.deaths;
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

  /** Waits for a timer: by then, everything that can continue without an outside call has continued. */
  async #untilItWaits(running: Promise<unknown> | undefined, release: () => void): Promise<void> {
    // The caller of the work gets its error.
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

/** The number of deaths in which the work was recorded, when the process `by` asks. */
export function deathsOf(known: NamedEntry | null, by: { readonly boot: string; readonly died: boolean }): number {
  if (known === null) return 0;
  const wasNamed = known.boot !== null && known.boot !== by.boot;
  return known.deaths + (wasNamed && by.died ? 1 : 0);
}

/** Why quarantined work was given up. `during`: what it did each time. */
export function stoppedPlatform(during: string): string {
  return `the platform crashed or hung ${MOST_DEATHS + 1} times while ${during}: it is not tried again`;
}

/**
 * Quarantine records of a run (src/kernel/run/quarantine.ts), in its SQLite. `boot`: the process in which it is recorded
 * now.
 */
export class QuarantineStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  find(key: QuarantineKey): NamedEntry | null {
    const found = "select deaths, boot from suspects where key = ?";
    return this.#sql.exec<QuarantineRow>(found, key).toArray()[0] ?? null;
  }

  name(key: QuarantineKey, boot: string | null, deaths: number): void {
    this.#sql.exec("insert or replace into suspects values (?, ?, ?)", key, deaths, boot);
  }

  drop(key: QuarantineKey): void {
    this.#sql.exec("delete from suspects where key = ?", key);
  }
}

/**
 * How the previous process ended. Locally the parent process of workerd reports it through LAST_END. A deployment has
 * no such binding; there, a repeated alarm shows it for its own object only.
 */

/**
 * Answered once the platform has booted, because the caller is about to run work that may have ended the process
 * before.
 */
export async function lastEnd(env: LocalEnv): Promise<LastEnd> {
  if (known !== undefined || env.LAST_END === undefined) return known ?? IN_ORDER;
  const reply = await env.LAST_END.fetch("http://last-end/");
  known = await reply.json<LastEnd>();
  return known;
}

/** Identifies this process (in production: this isolate). */
export function bootId(): string {
  boot ??= crypto.randomUUID();
  return boot;
}
