/** The version of a turn whose engine sends no label, and which labels are possible at the time of sampling. */
import { expect, test } from "vitest";
import type { ServedWeights } from "../../../src/core/training/numbering.ts";
import { samplesOf } from "../../../src/core/training/samples.ts";
import { DISPATCHED, FIRST, GOES_ON, rollout, stored } from "./sampled-turns.ts";

/**
 * Version 3 until 150 ms; then 4, possibly followed by 5 from 300 on; taken back at 400; 3 is served again from 500 on.
 */
const SERVED: readonly ServedWeights[] = [
  { at: 0, version: 3, newest: 4, taken_back: 0 },
  { at: 150, version: 4, newest: 4, taken_back: 0 },
  { at: 300, version: 4, newest: 5, taken_back: 0 },
  { at: 400, version: 4, newest: 4, taken_back: 1 },
  { at: 500, version: 3, newest: 4, taken_back: 0 },
];

/** Calls at these times, to an engine with this label. */
function called(times: readonly (readonly [sent_at: number, answered_at: number])[], version: string | null = null) {
  const turns = stored([FIRST, GOES_ON].slice(0, times.length).map((turn) => ({ ...turn, version })));
  return turns.flatMap((turn, index) => {
    const [sent_at = 0, answered_at = 0] = times[index] ?? [];
    return [{ ...turn, sent_at, answered_at, dispatch_version: 3 }];
  });
}

test("a turn without a version has the oldest version that its call can have met, whatever its group was dispatched with", () => {
  const versions = (...times: readonly (readonly [number, number])[]) =>
    samplesOf(rollout(called(times)), { ...DISPATCHED, served: SERVED }).samples.map((sample) => [
      sample.weight_versions.map(({ version }) => version),
      sample.policy_version_start,
      sample.policy_version_end,
    ]);
  expect(versions([10, 99])).toEqual([[[3], 3, 3]]);
  expect(versions([10, 20], [150, 160])).toEqual([[[3, 4], 3, 4]]);
  expect(versions([200, 210], [290, 310])).toEqual([[[4, 4], 3, 4]]);
  expect(versions([10, 20], [149, 160])).toEqual([[[3, 3], 3, 3]]);
});

test("a turn without a version does not train if weights were taken back during its call, or are unknown", () => {
  const cause = (times: readonly [number, number], version: string | null = null, from = SERVED) =>
    samplesOf(rollout(called([[10, 20], times], version)), { ...DISPATCHED, served: from }).untrainable;
  for (const times of [
    [399, 400],
    [390, 510],
    [410, 420],
    [499, 500],
  ] as const)
    expect([times, cause(times), cause(times, "base")]).toEqual([times, "unknown_version", "unknown_version"]);
  expect([cause([500, 510]), cause([390, 399])]).toEqual([null, null]);
  // If no engine reports, the published version is taken back at a single moment.
  const published = SERVED.filter(({ taken_back }) => taken_back === 0);
  expect(cause([490, 510], null, published)).toBe("unknown_version");
  expect(cause([200, 210], null, SERVED.slice(1))).toBe("unknown_version");
  expect(cause([200, 210], null, [])).toBe("unknown_version");
  // The engine's own label has precedence.
  expect(cause([390, 510], "3")).toBeNull();
});

test("if the start of a turn's call is unknown, the call is assumed to have taken the model's latency", () => {
  const [turn] = called([[0, 200]]);
  if (turn === undefined) throw new Error("no turn");
  const { sent_at: _, ...unsaid } = turn;
  const facts = { ...DISPATCHED, served: SERVED };
  const of = (latency_ms: number) => samplesOf(rollout([{ ...unsaid, latency_ms }]), facts);
  expect(of(50).samples[0]?.weight_versions[0]?.version).toBe(4);
  expect(of(51).samples[0]?.weight_versions[0]?.version).toBe(3);
});

test("a label of a version that did not exist when the turn was sampled is invalid, even if the version exists now", () => {
  const cause = (answered: number, label: string) =>
    samplesOf(rollout(called([[answered - 5, answered]], label)), {
      ...DISPATCHED,
      served: SERVED,
      newest_version: 9,
    }).untrainable;
  expect([cause(299, "5"), cause(300, "5"), cause(299, "4")]).toEqual(["unpublished_version", null, null]);
});
