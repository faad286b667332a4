/** The calls that the simulation of large loads counts with are those that the platform makes. */
import { expect, test } from "vitest";
import { CallCosts } from "../../bench/simulate/call-costs.ts";
import { measureCalls } from "../../bench/simulate/measure-calls.ts";
import recorded from "../../bench/simulate/recorded.json" with { type: "json" };

test("small runs on a local platform make as many calls for each event as were recorded", async () => {
  const lines: string[] = [];
  expect(await measureCalls((line) => lines.push(line))).toEqual(CallCosts.parse(recorded.calls));
});
