import { baseWeights, bytesFromWeights, WEIGHT_COUNT, weightsFromBytes } from "@rollcall/policy/weights";
import { expect, test } from "vitest";
import { measure } from "../../../scripts/pretrain/measure.ts";
import { loadFields } from "../../../scripts/pretrain/playing-field.ts";

test("the weights fit the model, are finite, and take less than 600 kB", () => {
  const weights = baseWeights();
  expect(weights).toHaveLength(WEIGHT_COUNT);
  expect(weights.every(Number.isFinite)).toBe(true);
  expect(bytesFromWeights(weights).byteLength).toBeLessThan(600_000);
});

test("bytes are 32-bit floats, little-endian, and any other number of them is refused", () => {
  const weights = Float32Array.from({ length: WEIGHT_COUNT }, (_, at) => at / 7);
  const bytes = bytesFromWeights(weights);
  expect([...bytes.subarray(28, 32)]).toEqual([0, 0, 128, 63]);
  expect(Buffer.compare(bytesFromWeights(weightsFromBytes(bytes)), bytes)).toBe(0);
  expect(() => weightsFromBytes(bytes.subarray(4))).toThrow(`weights are ${WEIGHT_COUNT * 4} bytes`);
});

test("the base policy is as documented: format and weak habits, below one half when greedy", async () => {
  const levels = await measure(await loadFields(), baseWeights(), 64);
  for (const { environment, temperature, reward } of levels) {
    const [least, most] = temperature === 0 ? [0, 0.5] : [0.1, 0.6];
    expect(reward, `${environment} at temperature ${temperature}`).toBeGreaterThanOrEqual(least);
    expect(reward, `${environment} at temperature ${temperature}`).toBeLessThan(most);
  }
});
