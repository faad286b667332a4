/** Calls of trainers in random orders, and the invariants that always hold. */
import fc from "fast-check";
import { test } from "vitest";
import { expireLease, revive } from "../../../src/kernel/trainer/batch-state.ts";
import type { TrainerState } from "../../../src/kernel/trainer/state.ts";
import { PUSH, TrainerByHand, terms } from "../trainer-by-hand.ts";

/** One possible event, varied by a number. */
type Act = (trainer: TrainerByHand, value: number) => void;

const someEpoch = ({ state }: TrainerByHand, value: number) => Math.max(1, state.epoch - (value % 5 === 0 ? 1 : 0));
const someSerial = ({ state }: TrainerByHand, value: number) => Math.max(1, state.serials - (value % 3));
const REPLIES = ["accepted", "gone", "absent", "refused"] as const;

const ACTS: readonly Act[] = [
  (trainer, value) => trainer.ready(trainer.state.acked_step + 1 + (value % 3)),
  (trainer) => trainer.ready(trainer.state.acked_step + 1, trainer.state.acked_step + 1),
  (trainer, value) => {
    trainer.register({ version: Math.max(0, trainer.state.acked_step - (value % 3)) });
  },
  (trainer, value) => {
    trainer.register({ reset_to: Math.max(0, trainer.state.published - (value % 4)) });
  },
  (trainer, value) => void trainer.register({ last: trainer.state.acked_step + (value % 3) }),
  (trainer, value) => void trainer.lease(trainer.state.acked_step + 1, someEpoch(trainer, value)),
  (trainer, value) => {
    trainer.now += value * 10_000;
    trainer.state = expireLease(trainer.state, trainer.terms, trainer.now);
  },
  (trainer, value) => {
    const step = trainer.state.acked_step + 1 - (value % 2);
    const published = value % 3 === 0 ? {} : undefined;
    trainer.ack(someSerial(trainer, value), step, {
      epoch: someEpoch(trainer, value),
      ...(published !== undefined && { published }),
    });
  },
  (trainer, value) => {
    trainer.nack(someSerial(trainer, value), value > 1, value === 5 ? "shutdown" : "oom");
  },
  (trainer, value) => {
    const version = Math.max(0, trainer.state.acked_step + 1 - (value % 4));
    trainer.report(value % 2 === 0 ? "published" : "applied", version);
  },
  (trainer) => {
    const dead = trainer.state.batches.find((one) => one.state === "dead");
    if (dead !== undefined) trainer.state = revive(trainer.state, dead.step, trainer.now);
  },
  (trainer, value) => {
    const at = trainer.offerAt();
    if (at === null || at > trainer.now) return;
    trainer.answered(trainer.offer(), { kind: REPLIES[value % 4] ?? "accepted", message: "said" });
  },
];

test("in any order of events: one lease, steps in order, and versions that only grow within an epoch", () => {
  const acts = fc.array(fc.tuple(fc.integer({ min: 0, max: 11 }), fc.integer({ min: 0, max: 9 })), {
    minLength: 20,
    maxLength: 80,
  });
  fc.assert(
    fc.property(acts, fc.constantFrom("pull", "both"), (steps, delivery) => {
      const trainer = new TrainerByHand(terms({ ...PUSH, delivery }, 12));
      for (const [kind, value] of steps) {
        const before = trainer.state;
        ACTS[kind]?.(trainer, value);
        const faults = faultsOf(before, trainer.state);
        if (faults.length > 0) throw new Error(faults.join(", "));
      }
    }),
    { numRuns: 150 },
  );
});

/** Compared by hand, because a hundred thousand expectations would take most of the test's time. */
function faultsOf(before: TrainerState, after: TrainerState): string[] {
  const { batches, lease, acked_step, published } = after;
  const steps = batches.map(({ step }) => step);
  const leased = batches.filter(({ state }) => state === "leased").map(({ step }) => step);
  const same = after.epoch === before.epoch;
  const rules: Readonly<Record<string, boolean>> = {
    "one lease": leased.length === (lease === null ? 0 : 1) && leased[0] === lease?.step,
    "a lease is on the next step": lease === null || lease.step === acked_step + 1,
    "steps in order": steps.every((step, at) => at === 0 || step > (steps[at - 1] ?? step)),
    "acked up to here": batches.every((one) => (one.state === "acked") === one.step <= acked_step),
    "nothing is published untrained": published <= acked_step,
    "epochs and news only grow": after.epoch >= before.epoch && after.seq >= before.seq,
    "one ack at a time": !same || [0, 1].includes(acked_step - before.acked_step),
    "versions only grow within an epoch": !same || published >= before.published,
  };
  return Object.keys(rules).filter((name) => rules[name] === false);
}
