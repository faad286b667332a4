/**
 * The state of a run as a whole: how many rollouts are planned and pending, and when the run ends.
 *
 * Invariants. A run ends once, when nothing is in flight and nothing more will be dispatched. A training run continues
 * until its trainer has acknowledged the last batch.
 */

import type { EventName } from "../../contract/event-names.ts";
import type { OutboundEventName } from "../../contract/outbound-event.ts";
import type { LeaseSlot } from "../endpoint/lease-keeper.ts";
import type { RunSpec } from "../messages/wire.ts";
import { endedByRefusals } from "./refusals.ts";
import type { RunHead } from "./schema.ts";
import type { RunStore } from "./store.ts";

/** How many members the group has when it is whole. */
export function groupSizeIn(store: RunStore, spec: RunSpec, group: number): number {
  const own = store.head().training?.shared === undefined ? null : store.training.groupSize(group);
  return own ?? spec.rollouts_per_example;
}

/** The number of slots, however many attempts each had: the base of `min_scored`. In a training run it grows. */
export function slotsOf(spec: RunSpec, { training }: Pick<RunHead, "training">): number {
  if (training?.shared !== undefined) return training.shared.slots;
  return (training?.groups_opened ?? spec.num_examples) * spec.rollouts_per_example;
}

export function plannedOf(spec: RunSpec, head: RunHead): number {
  return slotsOf(spec, head) + head.retried;
}

/** Rollouts not dispatched yet. In a run that stopped early they stay pending for ever. */
export function pendingOf(spec: RunSpec, head: RunHead): number {
  return plannedOf(spec, head) - head.dispatched;
}

/** Appends an event. Numbers have no gaps; it is part of the caller's transaction. */
export function appendEvent(store: RunStore, event: Parameters<RunStore["addEvent"]>[1], data: object): void {
  const head = store.head();
  const id = head.last_event + 1;
  store.addEvent(id, event, data);
  store.saveHead({ ...head, last_event: id });
}

/** Appends an event that webhooks get too: an announcement is stored until it is delivered. */
export function announce(store: RunStore, event: OutboundEventName & EventName, data: object, now: number): void {
  appendEvent(store, event, data);
  store.announcements.add(store.head().last_event, event, data, now);
}

/** Ends the run once nothing is in flight and nothing more will be dispatched. */
export function settle(store: RunStore, spec: RunSpec, now: number): void {
  const ended = endedByRefusals(store.head());
  if (ended !== null) store.saveHead(ended);
  const head = store.head();
  const more = head.stop === null && (pendingOf(spec, head) > 0 || trainsOn(spec, head));
  if (more || head.in_flight > 0 || head.settled_at !== null) return;
  const { status, error } = verdictOf(store, spec, head);
  store.saveHead({ ...head, status, error, settled_at: now, row_current: false });
  announce(store, `run.${status}`, { status, error }, now);
}

const CUT_SHORT = { deadline: " before the deadline", budget: " within max_cost_micros" } as const;

function verdictOf(
  store: RunStore,
  spec: RunSpec,
  head: RunHead,
): { status: "completed" | "failed" | "cancelled"; error: RunHead["error"] } {
  const { stop } = head;
  if (stop?.kind === "fail") {
    const { code, message } = stop;
    return { status: "failed", error: { code, message } };
  }
  if (stop?.reason === "user") return { status: "cancelled", error: null };
  const cut = stop === null ? "" : CUT_SHORT[stop.reason];
  if (spec.training !== undefined) return trainedVerdict(spec, head, cut);
  const slots = slotsOf(spec, head);
  // A slot that was scored more than once counts once.
  const scored = head.retries_dispatched === 0 ? head.scored : store.scoredSlots();
  // Divided, not multiplied: 0.56 × 25 is a little more than 14, and 14 / 25 is 0.56.
  if (scored / slots >= spec.min_scored) return { status: "completed", error: null };
  const message = `${scored} of ${slots} rollouts were scored${cut}; min_scored is ${spec.min_scored}`;
  return { status: "failed", error: { code: "too_few_scored", message } };
}

/** True until the trainer has acknowledged every batch. */
export function trainsOn({ training: asked }: RunSpec, { training }: RunHead): boolean {
  if (asked === undefined || training === null) return false;
  return training.trainer.acked_step < asked.max_steps;
}

function trainedVerdict(spec: RunSpec, head: RunHead, cut: string): ReturnType<typeof verdictOf> {
  if (!trainsOn(spec, head)) return { status: "completed", error: null };
  const steps = `${head.training?.trainer.acked_step ?? 0} of ${spec.training?.max_steps ?? 0} steps`;
  const message = `${steps} were trained${cut}`;
  return { status: "failed", error: { code: "too_few_steps", message } };
}

export function policyLease(store: RunStore): LeaseSlot {
  return {
    read: () => store.head().gate,
    write: (gate) => store.saveHead({ ...store.head(), gate }),
  };
}
