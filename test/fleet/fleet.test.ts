/**
 * Every age of engine, update mode and fault, as a training run of three steps on a fleet of two: `npm run test:fleet`.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import type { UpdateMode } from "../../src/contract/fleet.ts";
import type { Era } from "../fakes/vllm-routes.ts";
import { FAULTS } from "./faults.ts";
import { type Case, isOut, Stand } from "./stand.ts";

/** The engine ages that support each mode. */
const ERAS: Readonly<Record<UpdateMode, readonly Era[]>> = {
  lora_versioned: ["a", "b", "c", "prime_rl"],
  reload: ["a", "b", "c"],
  prime_rl: ["prime_rl"],
  reported: ["a", "b", "c", "prime_rl"],
};

const CASES = (Object.keys(ERAS) as UpdateMode[]).flatMap((mode) =>
  ERAS[mode].flatMap((era) =>
    FAULTS.filter((fault) => fault.modes.includes(mode) && (fault.era ?? era) === era).map((fault): Case => {
      return { name: `${mode} on ${era}: ${fault.name}`, era, mode, fault };
    }),
  ),
);

let stand: Stand;
beforeAll(async () => {
  stand = await Stand.start();
});
afterAll(() => stand.stop());

describe.concurrent("a training run on a fleet with one engine that", () => {
  test.for(CASES.map((one) => [one.name, one] as const))("%s", async ([, one], { expect }) => {
    const played = await stand.play(one);
    const { shown, samples, status, lost, violations, paused, wrong, stale_prefixes } = played;
    expect({ status, lost, violations, wrong, stale_prefixes, paused }).toEqual({
      ...{ status: "completed", lost: 0, violations: [], wrong: [], stale_prefixes: 0, paused: [null, null] },
    });
    expect(samples).toBeGreaterThanOrEqual(1);
    const { shown: why } = one.fault;
    if (why !== null) expect(shown.filter((line) => isOut(line) && why.test(line))).not.toEqual([]);
  });
});
