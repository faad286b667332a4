/** `rollout-scores`: scores units from their trajectories, and hands all scores of a message over in one call. */
import type { AnyEnvironment } from "../core/environments/any-environment.ts";
import { LIMITS } from "../core/limits.ts";
import { type ScoreRecord, scoreUnit } from "../core/score.ts";
import type { Trajectory } from "../core/trajectory.ts";
import { pinnedEnvironment } from "./environments.ts";
import { runObject } from "./names.ts";
import type { Subrequests } from "./subrequests.ts";
import { readTrajectory } from "./trajectory-store.ts";
import type { Member, RunSpec, ScoredMember, ScoresMessage, Unit } from "./wire.ts";

export async function scoreUnits(
  env: Env,
  message: ScoresMessage,
  subrequests: Subrequests,
): Promise<void> {
  const run = runObject(env, message.scope, message.run_id);
  const waiting = await subrequests.object(() => run.unitsToScore(message.units));
  if (waiting === null || waiting.units.length === 0) return;
  const { spec, units } = waiting;
  const environment = await pinnedEnvironment(spec.environment, spec.environment_args);
  // The code that scored the others is gone; the sweep gives these up as unscored.
  if (environment === null) return;
  const read: { unit: Unit; trajectories: Trajectory[] }[] = [];
  const failures: unknown[] = [];
  for (const unit of units) {
    try {
      read.push({ unit, trajectories: await trajectoriesOf(env, spec, unit, subrequests) });
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  const scored = await Promise.all(
    read.map(async ({ unit, trajectories }) =>
      pairUp(unit, await scoreInTime(environment, trajectories)),
    ),
  );
  if (scored.length > 0) await subrequests.object(() => run.scored(scored.flat()));
  // The others are scored; asked again, the run names only those that are not.
  if (failures.length > 0) throw failures[0];
}

/** A scoring function whose promise never settles must not hold up its neighbours: its unit has no score, and says why. */
export async function scoreInTime(
  environment: AnyEnvironment,
  trajectories: readonly Trajectory[],
  limitMs: number = LIMITS.scoringMs,
): Promise<ScoreRecord[]> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<ScoreRecord[]>((resolve) => {
    const records = trajectories.map((trajectory) => notScoredInTime(trajectory, limitMs));
    timer = setTimeout(() => resolve(records), limitMs);
  });
  try {
    return await Promise.race([scoreUnit(environment, trajectories), late]);
  } finally {
    clearTimeout(timer);
  }
}

function notScoredInTime({ rollout_id }: Trajectory, limitMs: number): ScoreRecord {
  const error = `scoring did not settle within ${limitMs / 1000} s`;
  return {
    rollout_id,
    reward: null,
    scores: [],
    scoring_errors: [{ function: "rubric", error, retryable: true }],
    unscored: "scorer",
  };
}

function pairUp({ members }: Unit, records: readonly ScoreRecord[]): ScoredMember[] {
  return records.flatMap((record, index) => {
    const member = members[index];
    return member === undefined ? [] : [{ ...placeOf(member), record }];
  });
}

function trajectoriesOf(
  env: Env,
  spec: RunSpec,
  unit: Unit,
  subrequests: Subrequests,
): Promise<Trajectory[]> {
  return subrequests.six(unit.members, async (member) => {
    const trajectory = await readTrajectory(env, spec, member, subrequests);
    if (trajectory === null) throw new Error(`trajectory of ${member.rollout_id} is missing`);
    return trajectory;
  });
}

function placeOf({ group, slot, attempt }: Member) {
  return { group, slot, attempt };
}
