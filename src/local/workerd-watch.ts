/**
 * Watches the one workerd of a platform. Miniflare starts a workerd that died again, by itself and on the same port;
 * this notices the death, tells, and says when the platform answers again, or that it never will. A workerd that runs
 * and answers nothing any more (all objects share one thread, and something on it computes without end) is ended here,
 * so that it is started again like one that died.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type DirectoryLock, hasCode } from "./directory-lock.ts";
import { answers, type Health } from "./healthz.ts";
import { cpuMsOf, findWorkerd, type ProcessMark, wasKilled, watchForKills } from "./processes.ts";
import { type Deaths, NO_DEATHS } from "./state-directory.ts";

interface WatchOptions {
  readonly port: number;
  readonly lock: DirectoryLock;
  readonly say: (line: string) => void;
  /** What the platform says of itself at this moment. */
  readonly health: () => Promise<Health>;
  /**
   * Milliseconds without any answer after which workerd is ended. They count while it computes: on a busy machine one
   * that has begun may take long to answer, and computes little.
   */
  readonly hungAfterMs: number;
  /** The platform answers; this is its workerd. */
  readonly onUp: (workerdPid: number) => void;
  /** It no longer does. */
  readonly onDown: () => void;
  /** Deaths before this boot that followed each other soon. */
  readonly soonDeaths: Deaths;
  /** It died; so many have by now, each soon after the one before. */
  readonly onDeath: (soonDeaths: Deaths) => void;
}

const LOOK_EVERY_MS = 200;
/** Each is a request: they must not be felt. */
const ASK_EVERY_MS = 1000;
const LOOK_FOR_NEW_EVERY_MS = 20;
/** One question counts for no more, whatever else kept this process from asking: a laptop that slept, a busy thread. */
const LONGEST_SILENCE_MS = 2500;
/** Of one that does not compute, so many milliseconds count as one. */
const IDLE_COUNTS = 10;
const NEW_WITHIN_MS = 30_000;
/** A workerd that lived longer than this did not die of what the one before it died of. */
const SOON_MS = 5 * 60_000;
const DIRECTORY_REMOVED = "its state directory was removed, with all its data; the next start creates a new one";
/** Deaths in a row with no answer in between: whatever ends it each time is not going to be found out. */
const MOST_DEATHS = 12;

export class WorkerdWatch {
  readonly lost: Promise<Error>;
  readonly #options: WatchOptions;
  readonly #lose: (reason: Error) => void;
  readonly #pending: PendingWrites;
  #workerd: ProcessMark | null = null;
  /** Of the workerd there is: it died, or it answered the last question. */
  #dead = false;
  #answering = false;
  #saidDown = false;
  #wasEnded = false;
  #askedAt = 0;
  #cpuMs: number | null = null;
  #silentMs = 0;
  /** Of the platform: whether its boot is through, and what was last told of it. */
  #begun = false;
  #up = false;
  #stopped = false;
  #deaths = 0;
  /** With no answer in between; and each soon after its workerd was begun. */
  #deathsInARow = 0;
  #soonDeaths = NO_DEATHS;
  #begunAt = 0;
  #answer = Promise.withResolvers<void>();
  #deadline: NodeJS.Timeout | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#soonDeaths = options.soonDeaths;
    this.#pending = new PendingWrites(options.say);
    watchForKills();
    const { promise, resolve } = Promise.withResolvers<Error>();
    this.lost = promise;
    this.#lose = resolve;
  }

  pid(): number {
    return this.#workerd?.pid ?? 0;
  }

  /** How often workerd died, or was ended because it hung, since the platform was started. */
  deaths(): number {
    return this.#deaths;
  }

  /** How many of them followed each other soon: whatever ended them is still there. */
  soonDeaths(): Deaths {
    return this.#soonDeaths;
  }

  /** Whether it did; one that is dying at this moment is waited for. */
  async hasDiedSince(deaths: number): Promise<boolean> {
    await sleep(LOOK_EVERY_MS);
    if (!this.#dead && !isAlive(this.pid())) this.#noteDeath();
    return this.#deaths > deaths;
  }

  /** Records the workerd as soon as it exists: from then on a killed boot leaves no orphan unnamed. */
  async find(): Promise<void> {
    for (let waited = 0; !this.#stopped; waited += LOOK_FOR_NEW_EVERY_MS) {
      const found = findWorkerd(process.pid, this.#options.port);
      if (found !== null) {
        this.#begin(found);
        return;
      }
      if (waited > NEW_WITHIN_MS) throw new Error("workerd did not start");
      await sleep(LOOK_FOR_NEW_EVERY_MS);
    }
  }

  #begin(workerd: ProcessMark): void {
    clearTimeout(this.#deadline);
    const first = this.#workerd === null;
    this.#workerd = workerd;
    this.#pending.write("lock", () => this.#options.lock.recordWorkerd(workerd));
    this.#dead = false;
    this.#begunAt = performance.now();
    this.#saidDown = false;
    this.#wasEnded = false;
    this.#askedAt = performance.now();
    this.#cpuMs = cpuMsOf(workerd.pid);
    this.#silentMs = 0;
    if (first) void this.#watch();
  }

  /** Resolves once workerd answers; rejects when it is lost first. */
  async answers(): Promise<void> {
    const lost = this.lost.then((reason): never => {
      throw reason;
    });
    await Promise.race([this.#answer.promise, lost]);
  }

  /** From now on the platform is up whenever it answers. */
  async begin(): Promise<void> {
    await this.answers();
    this.#begun = true;
    this.#becomeUp();
  }

  /** Miniflare started another workerd. */
  async restarted(): Promise<void> {
    if (this.#stopped) return;
    this.#noteDeath();
    await this.find();
  }

  /** Whether workerd still answered: else it was stuck, and ending it is no orderly stop. */
  async stop(): Promise<boolean> {
    // A terminal interrupts workerd, too: one that is dead by now was well if it answered until then.
    const stuck = this.#wasEnded || this.#silentMs > 0;
    const silent = this.#dead ? stuck : (await this.#options.health()) === "silent";
    this.#stopped = true;
    clearTimeout(this.#deadline);
    this.#options.onDown();
    return !silent;
  }

  /** One look after the other until it is stopped. */
  async #watch(): Promise<void> {
    while (!this.#stopped) {
      if (this.#options.lock.isLost()) {
        this.#lose(new Error(DIRECTORY_REMOVED));
        return;
      }
      if (!this.#dead && !isAlive(this.pid())) this.#noteDeath();
      if (!this.#dead) await this.#ask();
      this.#pending.retry();
      await sleep(this.#answering ? LOOK_EVERY_MS : LOOK_FOR_NEW_EVERY_MS);
    }
  }

  async #ask(): Promise<void> {
    const workerd = this.#workerd;
    if (this.#answering && performance.now() - this.#askedAt < ASK_EVERY_MS) return;
    const health = await this.#options.health();
    // Another one by now.
    if (this.#stopped || this.#dead || workerd !== this.#workerd) return;
    const now = performance.now();
    const cpuMs = cpuMsOf(this.pid());
    const computed = cpuMs === null || this.#cpuMs === null ? null : cpuMs - this.#cpuMs;
    const silence = countedSilence(now - this.#askedAt, computed);
    this.#askedAt = now;
    this.#cpuMs = cpuMs;
    this.#silentMs = health === "silent" ? this.#silentMs + silence : 0;
    if (answers(health)) this.#becomeAnswering();
    if (health === "ok") this.#pending.hasRoom();
    if (health === "full") this.#pending.isFull();
    if (this.#silentMs >= this.#options.hungAfterMs) this.#end();
  }

  #becomeAnswering(): void {
    this.#answering = true;
    this.#deathsInARow = 0;
    this.#answer.resolve();
    if (this.#begun) this.#becomeUp();
  }

  #becomeUp(): void {
    if (this.#up || this.#stopped) return;
    this.#up = true;
    const pid = this.pid();
    this.#pending.write("ready", () => this.#options.onUp(pid));
    if (this.#deaths > 0) {
      this.#options.say(`The platform answers again (workerd ${this.pid()}).`);
    }
  }

  /** Everything in it waits for whatever hangs. */
  #end(): void {
    const seconds = this.#options.hungAfterMs / 1000;
    this.#becomeDown(`workerd ${this.pid()} did not answer for ${seconds} s; it is restarted with the same state.`);
    // It is asked on until it is gone, and may be gone already.
    this.#silentMs = 0;
    this.#wasEnded = true;
    if (isAlive(this.pid())) process.kill(this.pid(), "SIGKILL");
  }

  #noteDeath(): void {
    if (this.#dead) return;
    this.#becomeDown(`workerd ${this.pid()} died; it is restarted with the same state.`);
    this.#dead = true;
    this.#answering = false;
    this.#answer = Promise.withResolvers();
    this.#deaths += 1;
    this.#deathsInARow += 1;
    const soon = performance.now() - this.#begunAt < SOON_MS;
    const { deaths, byItself } = soon ? this.#soonDeaths : NO_DEATHS;
    const itself = this.#wasEnded || !wasKilled(this.pid());
    this.#soonDeaths = { deaths: deaths + 1, byItself: byItself + (itself ? 1 : 0) };
    const soonDeaths = this.#soonDeaths;
    this.#pending.write("running", () => this.#options.onDeath(soonDeaths));
    if (this.#deathsInARow > MOST_DEATHS) {
      this.#lose(new Error(`workerd died ${MOST_DEATHS} times in a row without an answer`));
    }
    this.#deadline = setTimeout(() => {
      this.#lose(new Error(`workerd died and was not back within ${NEW_WITHIN_MS / 1000} s`));
    }, NEW_WITHIN_MS);
  }

  #becomeDown(why: string): void {
    if (this.#stopped || this.#saidDown) return;
    this.#saidDown = true;
    this.#up = false;
    this.#pending.drop("ready");
    this.#options.onDown();
    this.#options.say(why);
  }
}

/**
 * How many milliseconds without an answer count, of those that one question waited. `computed`: how long workerd was on
 * the processor meanwhile; null where nobody can tell.
 */
export function countedSilence(waited: number, computed: number | null): number {
  const counted = Math.min(waited, LONGEST_SILENCE_MS);
  return Math.min(counted, Math.max(computed ?? counted, counted / IDLE_COUNTS));
}

/** Miniflare is the parent and reaps it at once, so a pid that can be signalled is a process that runs. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
    throw error;
  }
}

/**
 * Small files that say how the platform stands (which workerd runs, where it answers, how the last ones ended), written when
 * that changes. A full disk must not end what is to outlast it: such a write is kept, and tried again until it works.
 */
export class PendingWrites {
  readonly #say: (line: string) => void;
  readonly #pending = new Map<string, () => void>();
  #full = false;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  /** `file`: what is written; an earlier write of it that is still pending is void. False where there was no room for it. */
  write(file: string, write: () => void): boolean {
    this.#pending.delete(file);
    try {
      write();
    } catch (error) {
      if (!hasCode(error, "ENOSPC")) throw error;
      this.#pending.set(file, write);
      this.isFull();
      return false;
    }
    return true;
  }

  /** Said once, whoever met it first. */
  isFull(): void {
    if (this.#full) return;
    this.#full = true;
    this.#say("The disk is full: nothing is lost, and runs continue once there is space.");
  }

  /** The platform wrote something; it is over once nothing is pending here either. */
  hasRoom(): void {
    if (!this.#full || this.#pending.size > 0) return;
    this.#full = false;
    this.#say("The disk has space again.");
  }

  /** What is pending is no longer true. */
  drop(file: string): void {
    this.#pending.delete(file);
  }

  /** Tries what is pending once more. */
  retry(): void {
    for (const [file, write] of [...this.#pending]) this.write(file, write);
  }
}
