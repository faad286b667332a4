/**
 * How fast the judges of an endpoint answer a run. This decides the queue of its scoring groups. Pure, except that it
 * writes the head.
 *
 * Invariants. Until a judge has answered, one scoring group at a time is sent, so a judge that never answers delays
 * only one. In the queues of quick judges a call is aborted after `PATIENCE_MS`. Its scoring group, and the later ones
 * of the same endpoint, move to the queue of silent judges, where a call has its whole time.
 */
import type { JudgePace } from "../../messages/wire.ts";
import type { RunHead } from "../schema.ts";
import type { RunStore } from "../store.ts";

/** How long a call may take while other scoring groups wait for it; then it is aborted. */
export const PATIENCE_MS = 10_000;
/** A judge that took longer is slow: scoring groups of others should not wait for its next calls. */
const SLOW_MS = 3000;
/** A slow or silent judge that answers within this time is quick again. */
const SOON_MS = 1500;

type Pace = JudgePace | "quick";

/** For a message. Absent: judges that are quick or of unknown pace, in a run whose scoring groups need little work. */
export function paceOf({ judge_paces, judged_heavy }: RunHead, endpointId: string): { readonly pace?: JudgePace } {
  const pace = judge_paces[endpointId];
  if (pace !== undefined && pace !== "quick") return { pace };
  return judged_heavy === true ? { pace: "slow" } : {};
}

/** From now on the run's scoring groups go to the slow queues, where one may take its full work limit. */
export function noteHeavy(store: RunStore): void {
  const head = store.head();
  if (head.judged_heavy !== true) store.saveHead({ ...head, judged_heavy: true });
}

export function isUnproven({ judge_paces }: RunHead, endpointId: string): boolean {
  return judge_paces[endpointId] === undefined;
}

/** A call was aborted, or its whole time passed without a reply. */
export function noteSilent(store: RunStore, endpointId: string): void {
  setPace(store, endpointId, "silent");
}

/** A judge replied, whatever the result, after `took_ms`; absent: quickly. */
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
