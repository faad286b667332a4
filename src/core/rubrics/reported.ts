/** Adds the scores that an agent reported to those of the rubric. */
import { ScoringError } from "../../contract/errors.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { endedWell, type ScoreRecord, storable } from "./score.ts";
import { failureOf, type Score, type ScoringFailure } from "./scoring.ts";

/**
 * The record with the reported scores. A reported reward that is null, or has the name of one of the rubric's scores,
 * leaves the rollout without a reward, and so does a rubric without rewards if none was reported. A reported metric with
 * such a name is left out. `member`: the rollout that the record belongs to.
 */
export function withReported(record: ScoreRecord, member: Trajectory | undefined): ScoreRecord {
  const { reported } = member ?? {};
  if (member === undefined || reported === undefined || !endedWell(member)) return record;
  const added: Score[] = [
    ...Object.entries(reported.rewards).map(([name, { score, weight }]) => ({ name, score, weight })),
    ...Object.entries(reported.metrics).map(([name, score]) => ({ name, score, weight: 0 })),
  ];
  const names = new Set(record.scores.map(({ name }) => name));
  const errors = added.flatMap(({ name, score, weight }): ScoringFailure[] => {
    if (names.has(name) && weight === 0) return [];
    if (names.has(name)) return [failureOf(name, new ScoringError("the rubric has a score of this name too"))];
    return score === null ? [failureOf(name, new ScoringError("the agent could not produce this score"))] : [];
  });
  const hasReward = [...record.scores, ...added].some(({ weight }) => weight !== 0);
  if (!hasReward) errors.push(failureOf("reward", new ScoringError("neither the rubric nor the agent has a reward")));
  const isMissing = added.some(({ name, score, weight }) => weight !== 0 && (score === null || names.has(name)));
  const sum = added.reduce((total, { score, weight }) => total + (score ?? 0) * weight, record.reward ?? 0);
  const unscored = record.unscored ?? (isMissing || !hasReward ? "scorer" : Number.isFinite(sum) ? null : "non_finite");
  return storable({
    ...record,
    reward: unscored === null ? sum : null,
    scores: [...record.scores, ...added.filter(({ name }) => !names.has(name))],
    scoring_errors: [...record.scoring_errors, ...errors],
    unscored,
  });
}
