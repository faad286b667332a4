/**
 * Scores a rollout in the object that played it, if its score depends only on its own trajectory: without a queue, a
 * consumer or a second read. All other rollouts are scored by the consumer, with the same result.
 */
import type { Trajectory } from "../../contract/trajectory.ts";
import { fetches } from "../../core/environments/capabilities.ts";
import type { EnvironmentCode } from "../../core/protocol/environment-code.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import { scoringGroupWork } from "../../core/rubrics/work.ts";
import { lastEnd, outsideQuarantine } from "../environment/quarantine.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RolloutSpec, RunSpec } from "../messages/wire.ts";
import { hasHeavyScoringGroups, noteHeavyScoringGroup, openScoring, scoreInTime } from "./scoring-pass.ts";
import { beginInTurn } from "./scoring-turns.ts";

/** Work limit of the ready-made scorers, as they count it: about 50 ms, which is one pass (kit/fair-scheduler.ts). */
const STEPS = 1_000_000;

/** True if it is scored alone, calls nothing, and trains nothing. */
export function isScoredInPlace(
  { whole_groups, training, judges = {} }: RunSpec,
  { description }: EnvironmentCode,
): boolean {
  const asks = fetches(description.needs) || description.judges.length > 0;
  return !whole_groups && training === undefined && Object.keys(judges).length === 0 && !asks;
}

/**
 * The scores of a rollout that ended well, from its stored trajectory. Null: the consumer must score it, because it (or
 * another rollout of the run) needs too much work, or because a process died and its scoring may be the reason
 * (quarantine.ts). `begunHere`: no earlier process had begun it, so it is not the reason.
 */
export async function scoreInPlace(
  env: Env,
  spec: RolloutSpec,
  stored: string,
  subrequests: Subrequests,
  begunHere: boolean,
): Promise<ScoreRecord | null> {
  const isTooHeavy = () => hasHeavyScoringGroups(spec.run_id, STEPS);
  if (isTooHeavy() || (!begunHere && (await lastEnd(env)).deaths > 0)) return null;
  const scoring = await openScoring(env, spec, subrequests);
  if (scoring === null) return null;
  const work = scoringGroupWork(STEPS);
  const trajectory = JSON.parse(stored) as Trajectory;
  const { result } = await beginInTurn(spec.scope.orgId, work, async (pause, waited) => {
    // Another rollout may have exceeded the limit while this one waited.
    if (isTooHeavy()) return null;
    return await outsideQuarantine(spec.scope.orgId, () => scoreInTime(scoring, [trajectory], { work, pause, waited }));
  });
  const record = (await result)?.records[0];
  if (work.exceeded) noteHeavyScoringGroup(spec.run_id, work.steps);
  return record === undefined || work.exceeded ? null : record;
}
