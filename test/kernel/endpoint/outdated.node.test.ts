/** How long an endpoint's object uses cached settings. */
import { expect, test } from "vitest";
import { type EndpointLimits, isOutdated } from "../../../src/kernel/endpoint/lease-state.ts";

test("a fleet's state is read again after seconds, an endpoint's settings after minutes", () => {
  const limits = { max_concurrent: 1, rpm: null };
  const old = (of: EndpointLimits) => [1000, 10_000, 300_000].map((age) => isOutdated(of, age));
  expect(old(limits)).toEqual([false, false, true]);
  expect(old({ ...limits, fleet: { down: null } })).toEqual([false, true, true]);
  expect(old({ ...limits, fleet: { down: "why" } })).toEqual([true, true, true]);
});
