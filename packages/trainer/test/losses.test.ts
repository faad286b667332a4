/** The losses, token by token, checked against numbers derived from the formulas of their papers. */
import { numpy as np } from "@jax-js/jax";
import { beforeAll, expect, test } from "vitest";
import { startJax } from "../gradient.ts";
import { LOSSES, type LossName } from "../losses.ts";

const P = [-0.1, -0.2, -2, -0.05, -1.5, -0.7];
const Q = [-0.1, -0.6, -0.3, -0.4, -1.4, -0.7];
const ADVANTAGES = [1, 1, -1, -1, 0.5, 0];
/** The last token is not trainable: the caller leaves it out. */
const TRAINABLE = 5;

beforeAll(startJax);

function tokens(name: LossName) {
  const { loss, kept } = LOSSES[name](np.array(P), np.array(Q), np.array(ADVANTAGES));
  const first = (array: np.Array) => Array.from(array.dataSync()).slice(0, TRAINABLE);
  return { loss: first(loss), kept: first(kept) };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

test.each<[LossName, number, number[], number]>([
  ["dppo", -0.03016866, [-1, 0.00016, 0.00289, 1.419190049, -0.452408709], 2],
  ["ppo_clip", -0.51335116, [-1, -1.28, 0.8, 1.419068, -0.452419], 2],
  ["importance_sampling", -1.342492334, [-1, -1.491825, 0.182684, 1.419068, -0.452419], 0],
])("%s gives each token its loss, and cuts off tokens that moved too far", (name, total, each, cut) => {
  const { loss, kept } = tokens(name);
  expect(sum(loss)).toBeCloseTo(total, 6);
  for (const [at, value] of each.entries()) expect(loss[at]).toBeCloseTo(value, 6);
  expect(TRAINABLE - sum(kept)).toBe(cut);
});

test("cispo weights the logprob by a ratio that is capped and not differentiated", () => {
  const { loss } = tokens("cispo");
  const expected = P.slice(0, TRAINABLE).map(
    (p, at) => -Math.min(Math.exp(p - (Q[at] ?? 0)), 5) * (ADVANTAGES[at] ?? 0) * p,
  );
  for (const [at, value] of expected.entries()) expect(loss[at]).toBeCloseTo(value, 6);
});
