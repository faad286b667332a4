/**
 * Stores a consumer's scores. If the store refuses the scores of a scoring group (for their content), that group ends
 * unscored with a short reason, and the others are stored. Other errors of the store are thrown and can be retried.
 */
import { ScoringError, serializeError } from "../../contract/errors.ts";
import { orRefusal } from "../kit/storage-faults.ts";
import type { GroupSamples } from "../messages/training-wire.ts";
import type { RunSpec, ScoredMember } from "../messages/wire.ts";
import { score } from "./accounting.ts";
import type { RunStore } from "./store.ts";

export function takeScores(
  store: RunStore,
  spec: RunSpec,
  members: readonly ScoredMember[],
  now: number,
  samples: readonly GroupSamples[] = [],
): void {
  if (refusedScores(store, spec, members, now, samples) === null) return;
  for (const scoringGroup of scoringGroupsOf(spec, members)) {
    const refused = refusedScores(store, spec, scoringGroup, now, samples);
    if (refused === null) continue;
    const without = scoringGroup.map((member) => withoutScores(member, refused));
    score(store, spec, without, now);
  }
}

function refusedScores(...scores: Required<Parameters<typeof score>>): string | null {
  const taken = orRefusal(() => {
    score(...scores);
    return { refused: null };
  });
  return taken.refused;
}

/** The members of each scoring group, which are stored or refused together. */
function scoringGroupsOf({ whole_groups }: RunSpec, members: readonly ScoredMember[]): (readonly ScoredMember[])[] {
  if (!whole_groups) return members.map((member) => [member]);
  return [...Map.groupBy(members, ({ group }) => group).values()];
}

function withoutScores({ record, ...place }: ScoredMember, why: string): ScoredMember {
  const { rollout_id } = record;
  const failure = { function: "rubric", error: reasonOf("its scores", why), retryable: false };
  const none = { reward: null, scores: [], scoring_errors: [failure], unscored: "scorer" } as const;
  return { ...place, record: { rollout_id, ...none } };
}

/** The error text for a value that could not be stored. */
export function reasonOf(what: string, why: string): string {
  const { error, message } = serializeError(new ScoringError(`${what} could not be stored: ${why}`));
  return `${error}: ${message}`;
}
