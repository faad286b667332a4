/** Bounds the time of code that core calls. Core has no timers: the caller gives them. */
import { StageTimeoutError } from "../contract/errors.ts";
import type { Awaitable } from "./environments/contract.ts";

/** Why a step is not waited for any longer. `whole`: the time of the whole rollout is over, not that of the step. */
export interface TimeUp {
  readonly message: string;
  readonly whole: boolean;
}

/** The timer of one step. */
export interface StepTimer {
  /** Resolves when the step's time is over. */
  readonly over: Promise<TimeUp>;
  /** Must be called once the step has ended. */
  readonly stop: () => void;
}

/** The result of `work`. Rejects with StageTimeoutError when its time is over; the work itself cannot be stopped. */
export async function withinTime<T>(work: Awaitable<T>, begin: () => StepTimer): Promise<T> {
  if (!isThenable(work)) return work;
  const promise = Promise.resolve(work);
  // Most hooks only compute: they settle before a timer would be worth making.
  if (await settlesAtOnce(promise)) return await promise;
  const timer = begin();
  const { promise: late, reject } = Promise.withResolvers<never>();
  void timer.over.then(({ message, whole }) => reject(new StageTimeoutError(message, whole)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.stop();
  }
}

function isThenable(work: unknown): boolean {
  return typeof work === "object" && work !== null && "then" in work;
}

/** How many microtasks a hook without I/O may take: each `await` in it takes a few. */
const PROMPT_TICKS = 200;

/** True if the promise settles, either way, without any I/O. */
export async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  for (let tick = 0; tick < PROMPT_TICKS && !settled; tick += 1) await null;
  return settled;
}
