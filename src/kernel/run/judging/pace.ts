/**
 * How soon the judges of an endpoint answer a run, which says which queue its units go to. Pure but for the head it writes.
 *
 * Invariants. Until somebody has answered, one unit at a time is asked for: a judge that never answers is met once before
 * the others follow. In the queues of judges that answer soon a call is hung up on after `PATIENCE_MS`; its unit goes on in
 * the queue of silent judges, where a call has its whole time, and so do those of the same endpoint after it.
 */
import type { JudgePace } from "../../messages/wire.ts";
import type { RunHead } from "../schema.ts";
import type { RunStore } from "../store.ts";

/** What a judge has to answer in, where others wait behind it: then its call is hung up on. */
export const PATIENCE_MS = 10_000;
/** A judge that took longer is slow: units of others should not wait behind its next ones. */
const SLOW_MS = 3000;
/** A slow or silent judge that answers in this is none any more. */
const SOON_MS = 1500;

type Pace = JudgePace | "quick";

/** For a message: absent for judges that answer soon, or that nobody has heard of yet, in a run whose units take little work. */
export function paceOf({ judge_paces, judged_heavy }: RunHead, endpointId: string): { readonly pace?: JudgePace } {
  const pace = judge_paces[endpointId];
  if (pace !== undefined && pace !== "quick") return { pace };
  return judged_heavy === true ? { pace: "slow" } : {};
}

/** From now on the run's units wait for their judges where a unit may take its whole work. */
export function noteHeavy(store: RunStore): void {
  const head = store.head();
  if (head.judged_heavy !== true) store.saveHead({ ...head, judged_heavy: true });
}

export function isUnproven({ judge_paces }: RunHead, endpointId: string): boolean {
  return judge_paces[endpointId] === undefined;
}

/** A call was hung up on, or its whole time has passed without a word. */
export function noteSilent(store: RunStore, endpointId: string): void {
  setPace(store, endpointId, "silent");
}

/** There was an answer, of whatever kind, after `took_ms`; absent: soon enough. */
export function noteAnswer(store: RunStore, endpointId: string, took_ms = 0): void {
  const known = store.head().judge_paces[endpointId];
  const slow = took_ms > (known === "slow" || known === "silent" ? SOON_MS : SLOW_MS);
  setPace(store, endpointId, slow ? "slow" : "quick");
}

function setPace(store: RunStore, endpointId: string, pace: Pace): void {
  const head = store.head();
  if (head.judge_paces[endpointId] === pace) return;
  store.saveHead({ ...head, judge_paces: { ...head.judge_paces, [endpointId]: pace } });
}
