/** Describes what was truncated: an answer, or the rollout itself. Pure. */

/**
 * The stops that truncate the rollout. With any other stop only an answer was truncated, and the rollout continued or
 * ended with it.
 */
const STOPS: Readonly<Record<string, string>> = {
  prompt_too_long: "cut off: its prompt exceeded the model's context",
  max_size_reached: "cut off: it exceeded the maximum size of a rollout of this deployment",
};

/** For a truncated rollout, by its stop. */
export function rolloutCutText(stop: string | null): string {
  return STOPS[stop ?? ""] ?? "an answer was cut off at a token limit";
}

/** For a truncated turn: the endpoint ended the answer early, or the answer was longer than the environment keeps. */
export function turnCutText(finish: string | null): string {
  return finish === "length" ? "answer cut off at its token limit" : "more tokens than the environment allows";
}
