/**
 * Decides when 403 replies end a run. A 401 ends it at once. A 403 may be about the key or about one prompt; a reply
 * that does not say which is counted here, for each endpoint that the run calls (of its policy and of its judges).
 * Pure.
 *
 * Invariants. A run ends by 403 if three different tasks got one at an endpoint and no call of the run there was
 * answered. In that state no new group begins, but the run ends only when nothing is in flight, since calls in flight
 * may still be answered, in any order. One answered call decides it for good. The record is written together with the
 * end or the judgement that it comes from, and holds at most three task keys and one message per endpoint.
 */
import { PermissionDeniedError } from "../../contract/errors.ts";
import { shortText } from "../../contract/shown-text.ts";
import type { RolloutEntry } from "../messages/run-records.ts";
import type { RolloutReport, RunSpec } from "../messages/wire.ts";
import type { EndpointRefusals, Refusals, RunHead } from "./schema.ts";

const NONE: Refusals = { answered: false, tasks: [], said: "" };
const ANSWERED: Refusals = { ...NONE, answered: true };
/** This many different tasks: one or two may contain text that a moderation filter refuses. */
const TASKS_TO_END = 3;
const QUOTED_CHARACTERS = 1000;

export function afterAnswer(all: EndpointRefusals, endpointId: string): EndpointRefusals {
  return all[endpointId]?.answered ? all : { ...all, [endpointId]: ANSWERED };
}

export function afterForbidden(
  all: EndpointRefusals,
  endpointId: string,
  { task, said }: { readonly task: string; readonly said: string },
): EndpointRefusals {
  const { answered, tasks } = all[endpointId] ?? NONE;
  if (answered || tasks.includes(task) || tasks.length >= TASKS_TO_END) return all;
  return { ...all, [endpointId]: { answered, tasks: [...tasks, task], said: shortText(said, QUOTED_CHARACTERS) } };
}

/** Counts a rollout's end. A rollout that took over a trajectory has called no endpoint. */
export function afterReport(
  all: EndpointRefusals,
  { endpoint_id, rescore }: RunSpec,
  { carries }: Pick<RolloutEntry, "carries">,
  { turns, failure, error, group, task_key }: RolloutReport,
): EndpointRefusals {
  if (rescore !== undefined || carries !== null) return all;
  if (turns > 0) return afterAnswer(all, endpoint_id);
  if (failure !== "provider" || error?.error !== PermissionDeniedError.name) return all;
  return afterForbidden(all, endpoint_id, { task: taskOf(task_key, group), said: error.message });
}

/** Names a task by its key, or by its group if the row was never read. */
export function taskOf(key: string | null, group: number): string {
  return key === null || key === "" ? `group/${group}` : key;
}

/** Why the run must end; null if it need not. */
export function refusedBy({ refusals }: Pick<RunHead, "refusals">): string | null {
  const found = Object.values(refusals).find(({ tasks }) => tasks.length >= TASKS_TO_END);
  if (found === undefined) return null;
  return `${TASKS_TO_END} tasks were refused with 403, and no call succeeded: ${found.said}`;
}

/** How many rollouts may begin in a run that is about to end by 403: those that complete a group that has begun. */
export function remainingToBegin(spec: RunSpec, head: RunHead): number {
  if (refusedBy(head) === null) return Number.POSITIVE_INFINITY;
  if (!spec.whole_groups) return 0;
  const { retried, retries_dispatched } = head;
  return retried - retries_dispatched + missingIn(spec, head);
}

/** First attempts that the group has yet to get of which only the first members were dispatched. */
function missingIn(spec: RunSpec, { dispatched, retries_dispatched, training }: RunHead): number {
  const firsts = dispatched - retries_dispatched;
  // A group is opened when its first members are dispatched.
  if (training?.shared !== undefined) return training.shared.slots - firsts;
  const cut = firsts % spec.rollouts_per_example;
  return cut === 0 ? 0 : spec.rollouts_per_example - cut;
}

/** For a retry by the owner: forgets refusals, but keeps endpoints whose key is known to be valid. */
export function forgetRefused(all: EndpointRefusals): EndpointRefusals {
  return Object.fromEntries(Object.entries(all).filter(([, { answered }]) => answered));
}

/** The head of a run that ends by 403 now; null for any other run. */
export function endedByRefusals(head: RunHead): RunHead | null {
  const message = refusedBy(head);
  if (message === null || head.stop !== null || head.settled_at !== null || head.in_flight > 0) return null;
  return { ...head, stop: { kind: "fail", code: "endpoint_unauthorized", message }, row_current: false };
}
