/**
 * Watches the workerd of a platform. Miniflare restarts a dead workerd on the same port. The watch notices the death,
 * reports it, and reports when the platform answers again or is lost. It also ends a workerd that runs but no longer
 * answers (all objects share one thread, and something on it computes without end), so that it is restarted.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type DirectoryLock, hasCode } from "./directory-lock.ts";
import { answers, type Health } from "./healthz.ts";
import { cpuMsOf, findWorkerd, type ProcessMark, wasKilled, watchForKills } from "./processes.ts";
import { type Deaths, NO_DEATHS } from "./state-directory.ts";

interface WatchOptions {
  readonly entryPort: number;
  readonly lock: DirectoryLock;
  readonly log: (line: string) => void;
  /** The current health of the platform. */
  readonly health: () => Promise<Health>;
  /**
   * Milliseconds without an answer after which workerd is ended. The time counts in full only while workerd computes:
   * on a busy machine, a workerd that is starting may take long to answer while it computes little.
   */
  readonly hungAfterMs: number;
  /** The platform answers; `workerdPid` is its workerd. */
  readonly onUp: (workerdPid: number) => void;
  /** The platform no longer answers. */
  readonly onDown: () => void;
  /** Deaths before this boot that followed each other soon. */
  readonly soonDeaths: Deaths;
  /** workerd died. `soonDeaths`: the deaths so far, each soon after the previous one. */
  readonly onDeath: (soonDeaths: Deaths) => void;
}

const LOOK_EVERY_MS = 200;
/** Each check is a request, so checks must be rare enough not to be noticed. */
const ASK_EVERY_MS = 1000;
const LOOK_FOR_NEW_EVERY_MS = 20;
/** The most that one unanswered request counts, even if this process could not ask (a sleeping laptop). */
const LONGEST_SILENCE_MS = 2500;
/** While workerd does not compute, this many milliseconds count as one. */
const IDLE_COUNTS = 10;
const NEW_WITHIN_MS = 30_000;
/** A workerd that lived longer than this did not die of the same cause as the previous one. */
const SOON_MS = 5 * 60_000;
const DIRECTORY_REMOVED = "its state directory was removed, with all its data; the next start creates a new one";
/** The most deaths in a row without an answer in between: another restart would not help. */
const MOST_DEATHS = 12;

export class WorkerdWatch {
  readonly lost: Promise<Error>;
  readonly #options: WatchOptions;
  readonly #lose: (reason: Error) => void;
  readonly #pending: PendingWrites;
  #workerd: ProcessMark | null = null;
  /** About the current workerd: it is dead; it answered the last request. */
  #dead = false;
  #answering = false;
  #saidDown = false;
  #wasEnded = false;
  #askedAt = 0;
  #cpuMs: number | null = null;
  #silentMs = 0;
  /** About the platform: its boot is complete; the state that was last reported. */
  #begun = false;
  #up = false;
  #stopped = false;
  #deaths = 0;
  /** Without an answer in between; and each soon after its workerd started. */
  #deathsInARow = 0;
  #soonDeaths = NO_DEATHS;
  #begunAt = 0;
  #answer = Promise.withResolvers<void>();
  #deadline: NodeJS.Timeout | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#soonDeaths = options.soonDeaths;
    this.#pending = new PendingWrites(options.log);
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

  /** How many of them followed each other soon: their cause may still be there. */
  soonDeaths(): Deaths {
    return this.#soonDeaths;
  }

  /** Whether workerd has died since then. Waits a moment for one that is dying now. */
  async hasDiedSince(deaths: number): Promise<boolean> {
    await sleep(LOOK_EVERY_MS);
    if (!this.#dead && !isAlive(this.pid())) this.#noteDeath();
    return this.#deaths > deaths;
  }

  /** Records the workerd as soon as it exists: from then on, a killed boot leaves no unrecorded orphan. */
  async find(): Promise<void> {
    for (let waited = 0; !this.#stopped; waited += LOOK_FOR_NEW_EVERY_MS) {
      const found = findWorkerd(process.pid, this.#options.entryPort);
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

  /** Resolves once workerd answers; rejects if the platform is lost first. */
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

  /** Returns whether workerd still answered. If not, it was stuck, and ending it is not an orderly stop. */
  async stop(): Promise<boolean> {
    // A terminal also interrupts workerd: a dead workerd was well if it answered until then.
    const stuck = this.#wasEnded || this.#silentMs > 0;
    const silent = this.#dead ? stuck : (await this.#options.health()) === "silent";
    this.#stopped = true;
    clearTimeout(this.#deadline);
    this.#options.onDown();
    return !silent;
  }

  /** Checks again and again until it is stopped. */
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
    // Another workerd runs by now.
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
      this.#options.log(`The platform answers again (workerd ${this.pid()}).`);
    }
  }

  /** Everything in this workerd waits for whatever hangs. */
  #end(): void {
    const seconds = this.#options.hungAfterMs / 1000;
    this.#becomeDown(`workerd ${this.pid()} did not answer for ${seconds} s; it is restarted with the same state.`);
    // It is still checked until it is gone, and may already be gone.
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
    this.#options.log(why);
  }
}

/** How much of the time without an answer counts. `computed`: workerd's CPU time meanwhile; null if unknown. */
export function countedSilence(waited: number, computed: number | null): number {
  const counted = Math.min(waited, LONGEST_SILENCE_MS);
  return Math.min(counted, Math.max(computed ?? counted, counted / IDLE_COUNTS));
}

/** Miniflare is the parent and reaps it immediately, so a pid that accepts a signal is a running process. */
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
 * Small files about the platform's state (which workerd runs, where it answers, how the last ones ended), written on
 * each change. A full disk must not end the platform: a failed write is kept and retried until it works.
 */
export class PendingWrites {
  readonly #log: (line: string) => void;
  readonly #pending = new Map<string, () => void>();
  #full = false;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** `file`: the name of the file; a pending earlier write of it is dropped. Returns false if there was no space. */
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

  /** Reported once, whichever write found it first. */
  isFull(): void {
    if (this.#full) return;
    this.#full = true;
    this.#log("The disk is full: nothing is lost, and runs continue once there is space.");
  }

  /** The platform wrote something. The disk is no longer full once nothing is pending here either. */
  hasRoom(): void {
    if (!this.#full || this.#pending.size > 0) return;
    this.#full = false;
    this.#log("The disk has space again.");
  }

  /** The pending write is no longer true. */
  drop(file: string): void {
    this.#pending.delete(file);
  }

  /** Tries pending writes again. */
  retry(): void {
    for (const [file, write] of [...this.#pending]) this.write(file, write);
  }
}
