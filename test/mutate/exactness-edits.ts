/** Edits to the requests that a training run sends to an engine, and to the checks of what an engine has proven. */
import { type Edit, editsOf } from "./edit.ts";

export const EXACTNESS_EDITS: readonly Edit[] = [
  ...editsOf(
    "src/contract/sampling.ts",
    ["contract/sampling", "packages/policy/exact"],
    [
      ["[run_id, generation, version].join", "[run_id, version, version].join"],
      ["...(salt !== null && { cache_salt: salt })", "...(salt === null && { cache_salt: salt })"],
    ],
  ),
  ...editsOf(
    "src/core/training/engine-exactness.ts",
    ["kernel/clients/probe", "packages/policy/exact"],
    [
      ["if (before < TELLING) return null;", "if (before > TELLING) return null;"],
      ["Math.abs(after - 2 * before) <", "Math.abs(after - 3 * before) <"],
      ["exact.penalties === false", "exact.penalties === null"],
    ],
  ),
];
