/** Makes the samples of a group in rounds: each asks the run's reference about the rows for which it has no answer yet. */
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import type { JudgeCalls } from "../../core/rubrics/score.ts";
import type { MadeSamples } from "./group-samples.ts";

/** The part of a claim that calls the reference. */
interface Asking extends Pick<JudgeCalls, "ask"> {
  /** False: the claim is lost, or the group is not wanted any more. */
  readonly goesOn: boolean;
}

/**
 * Ends when nothing is pending, or when a round has no answer. `make` makes the samples from `references`, which gets the
 * answers.
 */
export async function askReferences(
  make: () => Promise<MadeSamples>,
  references: Map<string, JudgeResult>,
  asking: Asking,
): Promise<MadeSamples> {
  for (;;) {
    const made = await make();
    if (made.pending.length === 0 || !asking.goesOn) return made;
    const given = await asking.ask(made.pending, charactersOf(made.pending));
    if (given === null) continue;
    if (given.size === 0) return made;
    for (const [key, result] of given) references.set(key, result);
  }
}

/** A token id takes four bytes: as much as two characters. */
function charactersOf(pending: readonly JudgeAsk[]): number {
  return pending.reduce((sum, { token_ids }) => sum + 2 * (token_ids?.length ?? 0), 0);
}
