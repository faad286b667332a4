/** What was cut off where something is marked as truncated: an answer, or the rollout itself. Pure. */

/** Stops that cut the rollout; under any other it went on, or ended, with an answer that was cut. */
const STOPS: Readonly<Record<string, string>> = {
  prompt_too_long: "cut off: its prompt exceeded the model's context",
  max_size_reached: "cut off: it exceeded the maximum size of a rollout",
};

/** Of a rollout that is truncated, by its stop. */
export function rolloutCutText(stop: string | null): string {
  return STOPS[stop ?? ""] ?? "an answer was cut off at a token limit";
}

/** Of a turn that is truncated: the endpoint ended the answer, or more came than the environment keeps. */
export function turnCutText(finish: string | null): string {
  return finish === "length" ? "answer cut off at its token limit" : "more tokens than the environment allows";
}
