/** Calls of trainers in random orders: what must hold whatever they do. */
import fc from "fast-check";
import { test } from "vitest";
import { expireLease, revive } from "../../../src/runtime/trainer/ledger.ts";
import type { TrainerState } from "../../../src/runtime/trainer/state.ts";
import { Ledger, PUSH, terms } from "../trainer-ledger-driver.ts";

/** One thing that may happen, made particular by a number. */
type Act = (ledger: Ledger, value: number) => void;

const someEpoch = ({ state }: Ledger, value: number) => Math.max(1, state.epoch - (value % 5 === 0 ? 1 : 0));
const someSerial = ({ state }: Ledger, value: number) => Math.max(1, state.serials - (value % 3));
const REPLIES = ["accepted", "gone", "absent", "refused"] as const;

const ACTS: readonly Act[] = [
  (ledger, value) => ledger.ready(ledger.state.acked_step + 1 + (value % 3)),
  (ledger) => ledger.ready(ledger.state.acked_step + 1, ledger.state.acked_step + 1),
  (ledger, value) => {
    ledger.register({ version: Math.max(0, ledger.state.acked_step - (value % 3)) });
  },
  (ledger, value) => {
    ledger.register({ reset_to: Math.max(0, ledger.state.published - (value % 4)) });
  },
  (ledger, value) => void ledger.register({ last: ledger.state.acked_step + (value % 3) }),
  (ledger, value) => void ledger.lease(ledger.state.acked_step + 1, someEpoch(ledger, value)),
  (ledger, value) => {
    ledger.now += value * 10_000;
    ledger.state = expireLease(ledger.state, ledger.terms, ledger.now);
  },
  (ledger, value) => {
    const step = ledger.state.acked_step + 1 - (value % 2);
    const published = value % 3 === 0 ? {} : undefined;
    ledger.ack(someSerial(ledger, value), step, {
      epoch: someEpoch(ledger, value),
      ...(published !== undefined && { published }),
    });
  },
  (ledger, value) => {
    ledger.nack(someSerial(ledger, value), value > 1, value === 5 ? "shutdown" : "oom");
  },
  (ledger, value) => {
    const version = Math.max(0, ledger.state.acked_step + 1 - (value % 4));
    ledger.report(value % 2 === 0 ? "published" : "applied", version);
  },
  (ledger) => {
    const dead = ledger.state.batches.find((one) => one.state === "dead");
    if (dead !== undefined) ledger.state = revive(ledger.state, dead.step, ledger.now);
  },
  (ledger, value) => {
    const at = ledger.offerAt();
    if (at === null || at > ledger.now) return;
    ledger.answered(ledger.offer(), { kind: REPLIES[value % 4] ?? "accepted", message: "said" });
  },
];

test("in whatever order things come: one lease, steps in order, and versions that only grow within an epoch", () => {
  const acts = fc.array(fc.tuple(fc.integer({ min: 0, max: 11 }), fc.integer({ min: 0, max: 9 })), {
    minLength: 20,
    maxLength: 80,
  });
  fc.assert(
    fc.property(acts, fc.constantFrom("pull", "both"), (steps, delivery) => {
      const ledger = new Ledger(terms({ ...PUSH, delivery }, 12));
      for (const [kind, value] of steps) {
        const before = ledger.state;
        ACTS[kind]?.(ledger, value);
        const faults = faultsOf(before, ledger.state);
        if (faults.length > 0) throw new Error(faults.join(", "));
      }
    }),
    { numRuns: 150 },
  );
});

/** Compared by hand: a hundred thousand expectations would take most of the test's time. */
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
