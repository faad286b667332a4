/** Sums and fair shares of an endpoint's runs that follow each change, compared with those computed from nothing. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { NO_OUTCOMES } from "../../../src/kernel/endpoint/health.ts";
import { LeaseRuns } from "../../../src/kernel/endpoint/lease-runs.ts";
import {
  ask,
  dropExpired,
  type EndpointLimits,
  type EndpointState,
  LEASE_MS,
  newEndpoint,
  nextEndpointAlarm,
  noteNotified,
  toNotify,
} from "../../../src/kernel/endpoint/lease-state.ts";
import type { LeaseAsk } from "../../../src/kernel/messages/endpoint-wire.ts";

interface Asks {
  readonly run: number;
  readonly running: number;
  readonly wants: number;
  readonly more: boolean;
  /** Calls that got a 429: they narrow the window. */
  readonly limited: number;
  /** Failures in a row: ten open the circuit. */
  readonly streak: number;
}

/** Milliseconds that pass, new limits, or a request. */
type Step = number | EndpointLimits | Asks;

const limit = fc.option(fc.integer({ min: 1, max: 40 }));
const limits: fc.Arbitrary<EndpointLimits> = fc.oneof(
  fc.record({ max_concurrent: limit, rpm: limit }),
  fc.record({
    ...{ max_concurrent: limit, rpm: fc.constant(null) },
    fleet: fc.record({ down: fc.constantFrom(null, "no replica") }),
  }),
);
const asks: fc.Arbitrary<Asks> = fc.record({
  ...{ run: fc.nat(11), running: fc.nat(6), wants: fc.nat(12), more: fc.boolean() },
  limited: fc.constantFrom(0, 0, 0, 5),
  streak: fc.constantFrom(0, 0, 0, 4),
});
const leaves = fc.nat(11).map((run): Asks => ({ run, running: 0, wants: 0, more: false, limited: 0, streak: 0 }));
const waits = fc.constantFrom(1, 1000, 12_000, LEASE_MS / 3, LEASE_MS);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: asks },
    { weight: 2, arbitrary: leaves },
    { weight: 2, arbitrary: waits },
    { weight: 1, arbitrary: limits },
  ),
  { maxLength: 60 },
);

function askOf({ run, running, wants, more, limited, streak }: Asks, now: number): LeaseAsk {
  const ok_at = streak > 0 ? null : now;
  const outcomes = { ...NO_OUTCOMES, calls: limited, limited, streak, ok_at };
  const names = { endpoint_id: "ep", run_id: `run_${run}`, model: "m" };
  return { scope: { orgId: `org_${run % 3}`, projectId: "pj" }, ...names, running, wants, more, outcomes };
}

/** The same state without anything that was kept from earlier ones; the runs are in another order. */
function fromNothing(state: EndpointState): EndpointState {
  return { ...state, runs: LeaseRuns.of([...state.runs].toReversed()) };
}

function seen(state: EndpointState, now: number) {
  const { runs, limits: known } = state;
  const places = [known.max_concurrent ?? Number.POSITIVE_INFINITY, 7].map((most) => runs.shares.places(most));
  return {
    runs: new Map(runs),
    sums: runs.sums,
    shares: [...places, runs.shares.rates(known.rpm ?? 60)],
    told: toNotify(state, now).toSorted(),
    alarm: nextEndpointAlarm(state, now),
  };
}

test("after any asks, leaves, expiries and changes of limits, sums, shares and grants are those computed from nothing", () => {
  fc.assert(
    fc.property(limits, steps, (first, order) => {
      let now = 1_000_000;
      let state = newEndpoint(first);
      for (const step of order) {
        if (typeof step === "number") {
          now += step;
          state = dropExpired(state, now);
        } else if ("max_concurrent" in step) {
          state = { ...state, limits: step };
        } else {
          const asked = askOf(step, now);
          const [kept, fresh] = [ask(state, asked, now), ask(fromNothing(state), asked, now)];
          expect(kept.grant).toEqual(fresh.grant);
          expect(seen(kept.state, now)).toEqual(seen(fresh.state, now));
          state = kept.state;
        }
        expect(seen(state, now)).toEqual(seen(fromNothing(state), now));
        state = noteNotified(state, toNotify(state, now).slice(0, 2), now);
        expect(seen(state, now)).toEqual(seen(fromNothing(state), now));
      }
    }),
    { numRuns: 300 },
  );
});

test("an ask that changes nothing that shares depend on computes none again", () => {
  const first = { run: 1, running: 0, wants: 5, more: true, limited: 0, streak: 0 };
  const { state } = ask(newEndpoint({ max_concurrent: 8, rpm: 60 }), askOf(first, 1000), 1000);
  const { shares } = state.runs;
  const [places, rates] = [shares.places(8), shares.rates(60)];
  const again = ask(state, askOf({ ...first, running: 3 }, 2000), 2000).state.runs;
  expect(again.shares.places(8)).toBe(places);
  expect(again.shares.rates(60)).toBe(rates);
  const wanting = ask(state, askOf({ ...first, wants: 6 }, 2000), 2000).state.runs;
  expect(wanting.shares.places(8)).toEqual(new Map([["run_1", 6]]));
});

test("a state is not changed by what follows from it", () => {
  const one = { run: 1, running: 0, wants: 5, more: true, limited: 0, streak: 0 };
  const { state } = ask(newEndpoint({ max_concurrent: 8, rpm: null }), askOf(one, 1000), 1000);
  const before = seen(state, 1000);
  const { state: two } = ask(state, askOf({ ...one, run: 2 }, 2000), 2000);
  noteNotified(two, ["run_1"], 2000);
  ask(state, askOf({ ...one, wants: 0 }, 2000), 2000);
  dropExpired(state, 1000 + LEASE_MS);
  expect(seen(state, 1000)).toEqual(before);
});
