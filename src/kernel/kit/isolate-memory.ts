/**
 * The memory that large work of this isolate may hold together. Cloudflare discards an isolate with more than 128 MB, and
 * all of its objects and requests with it. The rest of the 128 MB is for code, for copies that last no longer than a
 * scheduling turn, and for small work, which is not counted.
 *
 * Invariants. There is one total, `MEMORY_BUDGET_MIB`. It is divided (`SHARES`), so that no kind of work can starve
 * another: readers of pages never take memory from a rollout that runs or from a reply that arrives. Organisations share
 * each part (fair-semaphore.ts). Nothing waits in a circle: work that holds memory waits only for a kind further on in
 * the list rollouts, trajectories, questions, replies, and of the replies `LIMITS.repliesToEnd` may always finish.
 * Bodies, uploads and pages are refused after a while.
 */
import { LIMITS } from "../../contract/limits.ts";
import { FairSemaphore, Sums, UnreadPages } from "./fair-semaphore.ts";
import { type MemoryEnv, memoryBudgetOf } from "./memory-variables.ts";

/** A character of a string takes one byte or two. */
export const BYTES_PER_CHARACTER = 2;
/** A page has its texts, its rows and its bytes in memory while it is made. */
const COPIES_OF_PAGE = 3;

/** Of the total, in 48ths. In a deployment each is a MiB. */
const SHARES = {
  /** Rollouts and replies together: a reply becomes a part of its rollout. */
  playing: 20,
  rollouts: 16,
  replies: 16,
  trajectories: 5,
  questions: 5,
  uploads: 10,
  pages: 6,
  bodies: 2,
} as const;

const [MINUTE, PAUSE] = [60_000, 2 * LIMITS.bodyPauseMs];

export class IsolateMemory {
  /** In bytes. May be changed by tests; what is held stays. */
  total: number;
  readonly #playing = this.#part("playing");
  readonly #pages = this.#part("pages");
  /** Silent for longer than any step: a call, a hook, a close. */
  readonly rollouts = new FairSemaphore(this.#part("rollouts", this.#playing), 3 * LIMITS.closingMs);
  /** Replies that wait refresh their places. */
  readonly replies = new FairSemaphore(this.#part("replies", this.#playing), PAUSE);
  /** Silent for longer than an invocation. */
  readonly trajectories = new FairSemaphore(this.#part("trajectories"), 20 * MINUTE);
  readonly questions = new FairSemaphore(this.#part("questions"), 20 * MINUTE);
  readonly uploads = new FairSemaphore(this.#part("uploads"), PAUSE);
  /** Pages that are made, and those that wait for their readers. */
  readonly pages = new FairSemaphore(this.#pages, PAUSE);
  readonly unread = new UnreadPages(this.#pages, LIMITS.unreadMs, PAUSE);
  readonly bodies = new FairSemaphore(this.#part("bodies"), PAUSE);

  constructor(total: number) {
    this.total = total;
  }

  #part(kind: keyof typeof SHARES, whole: Sums | null = null): Sums {
    return new Sums(() => (this.total * SHARES[kind]) / 48, whole);
  }

  /** Stored bytes of the trajectories on one page: so few that one can be made while others wait for their readers. */
  get pageBytes(): number {
    return Math.min(LIMITS.pageBytes, Math.floor(this.#pages.most / (2 * COPIES_OF_PAGE)));
  }

  get pageMakingBytes(): number {
    return COPIES_OF_PAGE * this.pageBytes;
  }

  /** Trajectories that one slice of scoring holds, as characters of JSON; a larger scoring group is held alone. */
  get scoringCharacters(): number {
    return Math.min(LIMITS.scoringCharacters, Math.floor(this.trajectories.mostOfOne / BYTES_PER_CHARACTER));
  }
}

let memory: IsolateMemory | null = null;

/** The total is read once: all requests and objects of an isolate have the same variables. */
export function isolateMemory(env: MemoryEnv): IsolateMemory {
  memory ??= new IsolateMemory(memoryBudgetOf(env));
  return memory;
}
