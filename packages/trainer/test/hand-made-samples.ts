/** Samples of random tokens, as if some policy had sampled them. */

import { POLICY } from "@rollcall/policy/weights";
import { seededRandom } from "rollcall/helpers";
import type { TrainingSample } from "../row-batch.ts";

export function samplesOf(lengths: readonly number[], seed = 1): TrainingSample[] {
  const random = seededRandom("samples", seed);
  return lengths.map((length) => {
    const mask = Array.from({ length }, (_, at) => (at > 1 && random() < 0.6 ? 1 : 0));
    return {
      ids: mask.map(() => Math.floor(random() * POLICY.vocabulary)),
      mask,
      logprobs: mask.map((trains) => (trains === 1 ? -random() * 8 : 0)),
      advantage: random() * 2 - 1,
    };
  });
}
