/**
 * The memory that large work of this isolate may hold together. Cloudflare discards an isolate with more than 128 MB, and
 * all of its objects and requests with it. The rest of the 128 MB is for code, for copies that last no longer than a
 * scheduling turn, and for small work, which is not counted.
 *
 * Invariants. There is one total, `MEMORY_BUDGET_MIB`. It is divided (`SHARES`), so that no kind of work can starve
 * another: readers of pages never take memory from a rollout that runs or from a reply that arrives. Organisations share
 * each part (fair-semaphore.ts). Nothing waits in a circle: work that holds memory waits only for a kind further on in
 * the list questions, trajectories, rollouts, replies, fetched texts. Of most kinds one or two holders may have more than
 * there is (`GrowingMemory`), so that what is too large for its part comes through.
 */
import { LIMITS } from "../../contract/limits.ts";
import { FairSemaphore, GrowingMemory, Sums, UnreadPages } from "./fair-semaphore.ts";
import { type MemoryEnv, memoryBudgetOf } from "./memory-variables.ts";

/** A character of a string takes one byte or two. */
export const BYTES_PER_CHARACTER = 2;
/** While a page is made: the text that its rows are read from, its rows, their JSON, and its bytes. */
const COPIES_OF_PAGE = 4;

/** Of the total, in 48ths. In a deployment each is a MiB. */
const SHARES = {
  /** Rollouts and replies together: a reply becomes a part of its rollout. */
  playing: 17,
  rollouts: 14,
  replies: 13,
  fetched: 2,
  trajectories: 4,
  questions: 3,
  uploads: 5,
  pages: 8,
  unread: 4,
  bodies: 5,
} as const;

/** Characters of the trajectories of one scoring group, as a part of the bytes of the total. */
const LARGEST_GROUP = 1 / 4;
/** Few rollouts have more characters, however many are scored together. */
const LEAST_CHARACTERS = 512 * 1024;

/** Calls of agents have this part of the total beside it. */
const CALLS_PART = 8;

const [MINUTE, PAUSE] = [60_000, 2 * LIMITS.bodyPauseMs];

export class IsolateMemory {
  /** In bytes. May be changed by tests; what is held stays. */
  total: number;
  readonly #playing = this.#part("playing");
  /** Silent for longer than any step: a call, a hook, a close. */
  readonly rollouts = new GrowingMemory(
    this.#part("rollouts", this.#playing),
    3 * LIMITS.closingMs,
    2,
    () => this.#share("rollouts") / 8,
  );
  /** Of models and judges, until they are parsed. */
  readonly replies = new GrowingMemory(this.#part("replies", this.#playing), PAUSE, 2);
  /** Replies to the HTTP calls of environment code, which are quick. */
  readonly fetched = new GrowingMemory(this.#part("fetched"), PAUSE, 2);
  /** Silent for longer than a scoring pass. */
  readonly trajectories = new GrowingMemory(
    this.#part("trajectories"),
    3 * MINUTE,
    1,
    () => this.#share("trajectories") / 8,
  );
  /** Silent for longer than an invocation. */
  readonly questions = new GrowingMemory(this.#part("questions"), 20 * MINUTE, 2, () => this.#share("questions") / 4);
  readonly uploads = new GrowingMemory(this.#part("uploads"), PAUSE, 2);
  /** Pages while they are made. A reader that disconnects leaves its place behind, so that is given up soon. */
  readonly pages = new FairSemaphore(this.#part("pages"), 20_000);
  readonly unread = new UnreadPages(() => this.#share("unread"), LIMITS.unreadMs);
  readonly bodies = new FairSemaphore(this.#part("bodies"), PAUSE);
  /** Calls of agents, while they wait for their answers: in addition to the total. */
  readonly calls = new GrowingMemory(new Sums(() => this.total / CALLS_PART), 60 * MINUTE, 2);

  constructor(total: number) {
    this.total = total;
  }

  #share(kind: keyof typeof SHARES): number {
    return (this.total * SHARES[kind]) / 48;
  }

  #part(kind: keyof typeof SHARES, whole: Sums | null = null): Sums {
    return new Sums(() => this.#share(kind), whole);
  }

  /** Stored bytes of the trajectories on one page: so few that two can be made at once. */
  get pageBytes(): number {
    return Math.min(LIMITS.pageBytes, Math.floor(this.pages.most / (2 * COPIES_OF_PAGE)));
  }

  get pageMakingBytes(): number {
    return COPIES_OF_PAGE * this.pageBytes;
  }

  /** Trajectories that one slice of scoring holds, as characters of JSON, unless one scoring group has more. */
  get scoringCharacters(): number {
    return Math.min(LIMITS.scoringCharacters, Math.floor(this.trajectories.bytes.mostOfOne / BYTES_PER_CHARACTER));
  }

  /** The most that the turns of one rollout may have, as JSON in UTF-16 units, if so many are scored together. */
  mostCharacters(members: number): number {
    return Math.max(LEAST_CHARACTERS, Math.floor((this.total * LARGEST_GROUP) / members));
  }
}

let memory: IsolateMemory | null = null;

/** The total is read once: all requests and objects of an isolate have the same variables. */
export function isolateMemory(env: MemoryEnv): IsolateMemory {
  memory ??= new IsolateMemory(memoryBudgetOf(env));
  return memory;
}
