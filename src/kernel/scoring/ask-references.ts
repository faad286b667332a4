/** Makes the samples of a group in rounds: each asks the run's reference about the rows for which it has no answer yet. */
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import type { MadeSamples } from "./group-samples.ts";

/** The part of a claim that calls the reference. */
interface Asking {
  /** False: the claim is lost, or the group is not wanted any more. */
  readonly goesOn: boolean;
  /** The answers that came; none if nothing may be asked now. */
  ask(pending: readonly JudgeAsk[]): Promise<ReadonlyMap<string, JudgeResult>>;
}

/**
 * Ends when nothing is pending, or when a round has no answer. `make` makes the samples from `references`, which gets the
 * answers. `release`: called before each wait.
 */
export async function askReferences(
  make: () => Promise<MadeSamples>,
  references: Map<string, JudgeResult>,
  asking: Asking,
  release: () => void,
): Promise<MadeSamples> {
  for (;;) {
    const made = await make();
    if (made.pending.length === 0 || !asking.goesOn) return made;
    release();
    const given = await asking.ask(made.pending);
    if (given.size === 0) return made;
    for (const [key, result] of given) references.set(key, result);
  }
}
