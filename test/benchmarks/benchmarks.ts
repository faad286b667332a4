/** Every benchmark whose scoring is held against reference code. */
import type { Benchmark } from "./benchmark.ts";
import { GSM8K } from "./gsm8k.ts";
import { IFEVAL } from "./ifeval.ts";
import { MATH_500 } from "./math-500.ts";
import { GPQA, MMLU_PRO } from "./multiple-choice.ts";

export const BENCHMARKS: readonly Benchmark[] = [GSM8K, MATH_500, IFEVAL, MMLU_PRO, GPQA];
