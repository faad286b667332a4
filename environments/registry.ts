// biome-ignore-all lint/performance/noBarrelFile: the list is what it is for
/** The environments that a deployment bundles, one per line, sorted by name; not those from disk or npm. */
export { loadEnvironment as "agent" } from "./agent/environment.ts";
export { loadEnvironment as "calculator" } from "./calculator/environment.ts";
export { loadEnvironment as "graded-dataset" } from "./graded-dataset/environment.ts";
export { loadEnvironment as "grid-walk" } from "./grid-walk/environment.ts";
export { loadEnvironment as "gsm8k" } from "./gsm8k/environment.ts";
export { loadEnvironment as "guess-number" } from "./guess-number/environment.ts";
export { loadEnvironment as "ifeval" } from "./ifeval/environment.ts";
export { loadEnvironment as "judged-qa" } from "./judged-qa/environment.ts";
export { loadEnvironment as "math" } from "./math/environment.ts";
export { loadEnvironment as "multiple-choice" } from "./multiple-choice/environment.ts";
export { loadEnvironment as "reverse-text" } from "./reverse-text/environment.ts";
export { loadEnvironment as "tool-sql" } from "./tool-sql/environment.ts";
export { loadEnvironment as "wordle" } from "./wordle/environment.ts";
