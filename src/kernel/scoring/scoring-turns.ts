/**
 * Decides when a scoring group's scores are computed, by the process's scheduling turns (kit/fair-scheduler.ts).
 *
 * Invariants. One scoring group computes at a time. After `PASS_STEPS` of counted work (core/rubrics/work.ts) it gives
 * its turn back: between two scores, and where a score calls `pauseWork`. A score without such a pause may take longer,
 * at most `WORK_LIMITS.scoreSteps`. A group that waits for something outside delays no other, and what it computes
 * after that wait is counted with its next pass.
 */
import type { Work } from "../../core/rubrics/work.ts";
import { settlesAtOnce } from "../../core/step-timer.ts";
import { type FairScheduler, type GiveBack, PASS_STEPS, PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";

/** Called by a pass after each function that it has started. `doing`: the function's result. */
export type Pause = (doing: Promise<unknown>) => Promise<void>;

export interface Begun<T> {
  /** Resolves when the group does not compute any more: it has ended, or waits for something outside. */
  readonly idle: Promise<void>;
  readonly result: Promise<T>;
}

/**
 * Resolves when the scoring group has its first scheduling turn and has started. `work` counts its steps. `pass` can
 * read how many milliseconds it has waited for further turns. `first`: see `FairScheduler.take`.
 */
export async function beginInTurn<T>(
  org: string,
  work: Work,
  pass: (pause: Pause, waited: () => number) => Promise<T>,
  {
    scheduler = PROCESS_SCHEDULER,
    first = false,
  }: { readonly scheduler?: FairScheduler; readonly first?: boolean } = {},
): Promise<Begun<T>> {
  const scoringGroup = new ScoringGroupTurn(org, work, scheduler, first);
  await scoringGroup.take();
  const result = pass(
    (doing) => scoringGroup.pause(doing),
    () => scoringGroup.waited,
  );
  return { idle: scoringGroup.idle(result), result };
}

/** One scoring group, and whether it has the scheduling turn. */
class ScoringGroupTurn {
  readonly #org: string;
  readonly #work: Work;
  readonly #scheduler: FairScheduler;
  readonly #first: boolean;
  #giveBack: GiveBack | null = null;
  /** The number of steps when its turn began. */
  #from = 0;
  #waitedMs = 0;
  #waitsSince: number | null = null;

  constructor(org: string, work: Work, scheduler: FairScheduler, first: boolean) {
    this.#org = org;
    this.#work = work;
    this.#scheduler = scheduler;
    this.#first = first;
    work.breathe = () => this.#breathe();
  }

  /** In milliseconds. */
  get waited(): number {
    return this.#waitedMs + (this.#waitsSince === null ? 0 : this.#scheduler.waits.now() - this.#waitsSince);
  }

  async take(): Promise<void> {
    this.#giveBack = await this.#scheduler.take(this.#org, this.#first);
    this.#from = this.#work.steps;
  }

  async pause(doing: Promise<unknown>): Promise<void> {
    while (!(await this.#settlesSoon(doing))) {
      // It waits for something outside, unless it waits for its own next turn.
      if (this.#waitsSince === null) return this.#leave();
      await this.#scheduler.waits.wait(1);
    }
    await this.#breathe();
  }

  async #breathe(): Promise<void> {
    if (this.#work.steps - this.#from < PASS_STEPS || this.#waitsSince !== null) return;
    this.#leave();
    this.#waitsSince = this.#scheduler.waits.now();
    await this.take();
    this.#waitedMs = this.waited;
    this.#waitsSince = null;
  }

  async idle(result: Promise<unknown>): Promise<void> {
    const waitsOutside = async () => !(await this.#settlesSoon(result)) && this.#waitsSince === null;
    if (!(await waitsOutside())) await result.catch(() => undefined);
    this.#leave();
  }

  /** True if it settles without anything from outside: a timer fires after all work that could continue. */
  async #settlesSoon(promise: Promise<unknown>): Promise<boolean> {
    if (await settlesAtOnce(promise)) return true;
    const still = Symbol("still open");
    const timer = this.#scheduler.waits.wait(0).then(() => still);
    return (await Promise.race([promise.catch(() => null), timer])) !== still;
  }

  #leave(): void {
    this.#giveBack?.(this.#work.steps - this.#from);
    this.#giveBack = null;
  }
}
