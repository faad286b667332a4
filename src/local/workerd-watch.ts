/**
 * Watches the one workerd of a platform. Miniflare starts a workerd that died again, by itself and on the same port;
 * this notices the death, tells, and says when the platform answers again, or that it never will.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { DirectoryLock } from "./directory-lock.ts";
import { findWorkerd, type ProcessMark } from "./processes.ts";

interface WatchOptions {
  readonly port: number;
  readonly lock: DirectoryLock;
  readonly say: (line: string) => void;
  /** Whether the platform answers at this moment. */
  readonly answers: () => Promise<boolean>;
  /** The platform answers; this is its workerd. */
  readonly onUp: (workerdPid: number) => void;
  /** It no longer does. */
  readonly onDown: () => void;
}

const LOOK_EVERY_MS = 200;
const LOOK_FOR_NEW_EVERY_MS = 20;
const UP_WITHIN_MS = 30_000;

export class WorkerdWatch {
  readonly lost: Promise<Error>;
  readonly #options: WatchOptions;
  readonly #lose: (reason: Error) => void;
  #workerd: ProcessMark | null = null;
  #up = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  #deadline: NodeJS.Timeout | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<Error>();
    this.lost = promise;
    this.#lose = resolve;
  }

  pid(): number {
    return this.#workerd?.pid ?? 0;
  }

  /** Records the workerd as soon as it exists: from then on a killed boot leaves no orphan unnamed. */
  async find(): Promise<void> {
    for (let waited = 0; !this.#stopped; waited += LOOK_FOR_NEW_EVERY_MS) {
      const found = findWorkerd(process.pid, this.#options.port);
      if (found !== null) {
        this.#workerd = found;
        this.#options.lock.recordWorkerd(found);
        return;
      }
      if (waited > UP_WITHIN_MS) throw new Error("workerd did not start");
      await sleep(LOOK_FOR_NEW_EVERY_MS);
    }
  }

  /** Waits for the platform to answer, then watches it. */
  async begin(): Promise<void> {
    await this.#becomeUp();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  /** Miniflare started another workerd. */
  async restarted(): Promise<void> {
    if (this.#stopped) return;
    this.#becomeDown();
    await this.find();
    await this.#becomeUp();
    this.#options.say(`The platform answers again (workerd ${this.pid()}).`);
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#timer);
    clearTimeout(this.#deadline);
    this.#options.onDown();
  }

  #look(): void {
    if (this.#up && !isAlive(this.pid())) this.#becomeDown();
  }

  #becomeDown(): void {
    if (!this.#up || this.#stopped) return;
    this.#up = false;
    this.#options.onDown();
    this.#options.say(`workerd ${this.pid()} died; it is started again on the same state.`);
    this.#deadline = setTimeout(() => {
      this.#lose(new Error(`workerd died and was not back within ${UP_WITHIN_MS / 1000} s`));
    }, UP_WITHIN_MS);
  }

  async #becomeUp(): Promise<void> {
    for (let waited = 0; !(await this.#options.answers()); waited += LOOK_FOR_NEW_EVERY_MS) {
      if (this.#stopped) return;
      if (waited > UP_WITHIN_MS) throw new Error("/healthz does not answer 200");
      await sleep(LOOK_FOR_NEW_EVERY_MS);
    }
    if (this.#stopped) return;
    clearTimeout(this.#deadline);
    this.#up = true;
    this.#options.onUp(this.pid());
  }
}

/** Miniflare is the parent and reaps it at once, so a pid that can be signalled is a process that runs. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}
