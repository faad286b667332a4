/**
 * The parts of a rollout that run environment code, and how long each may take. core has no timers: whoever runs a
 * rollout brings a `StageLimit`, and without one (in an author's tests) nothing is cut short.
 */
import type { Awaitable } from "./contract.ts";

/**
 * `setup`: setupState, and openLive whenever handles are opened. `turn`: the stop conditions and the environment's reply.
 * `tool`: one tool call of it. `cleanup`: postRollout, each cleanup handler and closeLive, and handles opened for them.
 */
export type Stage = "setup" | "turn" | "tool" | "cleanup";

/**
 * What `work` gives, or a rejection with StageTimeoutError once the stage's time is over. `what` names the code in the
 * error. The work itself goes on: nothing can stop it.
 */
export type StageLimit = <T>(stage: Stage, what: string, work: Awaitable<T>) => Promise<T>;

export const unlimited: StageLimit = async (_stage, _what, work) => await work;
