/**
 * `rollout-scores`: scores units from their trajectories, and hands all scores of a message over in one call. Units whose
 * trajectories are more than may be held at once go by slices, as do those whose scoring calls other services, as many as
 * there are connections for.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { addressesNeeded } from "../../core/environments/capabilities.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import type { GroupSamples } from "../contract/training-wire.ts";
import type { Member, RunSpec, ScoredMember, ScoresMessage, Unit } from "../contract/wire.ts";
import { runObject } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import { samplesOfGroup, weightsOf } from "./group-samples.ts";
import {
  askCollectorOf,
  judgementRequestOf,
  openScoring,
  type Scoring,
  scoreAlone,
  scoreInTime,
  trajectoriesOf,
} from "./scoring-pass.ts";

export async function scoreUnits(env: Env, message: ScoresMessage, subrequests: Subrequests): Promise<void> {
  const run = runObject(env, message.scope, message.run_id);
  const waiting = await subrequests.object(() => run.unitsToScore(message.units));
  if (waiting === null || waiting.units.length === 0) return;
  const { spec } = waiting;
  const scoring = await openScoring(env, spec, subrequests);
  // The code that scored the others is gone; the sweep gives these up as unscored.
  if (scoring === null) return;
  const failures: unknown[] = [];
  let left = message.units;
  for (let { units } = waiting; units.length > 0; ) {
    const slice = units.slice(0, atOnce(scoring));
    const scored = await scoreSlice(env, spec, scoring, slice, subrequests, failures);
    const members = scored.flatMap((group) => group.members);
    const samples = scored.flatMap((group) => group.samples ?? []);
    if (members.length > 0) {
      await subrequests.object(() => run.scored(members, ...(samples.length > 0 ? [samples] : [])));
    }
    left = left.filter((number) => !slice.some(({ unit }) => unit === number));
    if (left.length === 0) break;
    units = (await subrequests.object(() => run.unitsToScore(left, true)))?.units ?? [];
  }
  // The others are scored; asked again, the run names only those that are not.
  if (failures.length > 0) throw failures[0];
}

function atOnce({ environment: { needs } }: Scoring): number | undefined {
  const fetches = needs.includes("fetch") || addressesNeeded(needs).length > 0;
  return fetches ? LIMITS.parallelFetches : undefined;
}

/** What a unit came to: its members' scores, and of a training run what they give to train on. */
interface ScoredUnit {
  readonly members: readonly ScoredMember[];
  readonly samples: GroupSamples | null;
}

/** Units that could not be read are left to the next delivery; why stands in `failures`. */
async function scoreSlice(
  env: Env,
  spec: RunSpec,
  scoring: Scoring,
  units: readonly Unit[],
  subrequests: Subrequests,
  failures: unknown[],
): Promise<ScoredUnit[]> {
  const read: { unit: Unit; trajectories: Trajectory[] }[] = [];
  for (const unit of units) {
    try {
      read.push({ unit, trajectories: await trajectoriesOf(env, spec, unit, subrequests) });
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  const passed = await Promise.all(
    read.map(async ({ unit, trajectories }) => {
      const asks = askCollectorOf(spec, trajectories.length);
      const records = await scoreAlone(env, spec, unit, scoring, (watched) =>
        scoreInTime(watched, trajectories, { judges: asks }),
      );
      return records === null ? [] : [{ unit, trajectories, records, pending: asks.pending }];
    }),
  );
  const passes = passed.flat();
  const requests = passes
    .filter(({ pending }) => pending.length > 0)
    .map(({ unit, pending }) => judgementRequestOf(spec, unit.unit, pending));
  // Without their judges' verdicts these have no scores yet.
  if (requests.length > 0) {
    const run = runObject(env, spec.scope, spec.run_id);
    await subrequests.object(() => run.requestJudgements(requests));
  }
  const scored: ScoredUnit[] = [];
  const settled = passes.filter(({ pending }) => pending.length === 0);
  const rollouts = settled.flatMap(({ trajectories }) => trajectories);
  const weights = settled.length > 0 ? await weightsOf(env, spec, rollouts, subrequests) : undefined;
  await subrequests.six(settled, async ({ unit, trajectories, records }) => {
    const members = pairUp(unit, records);
    try {
      const group = { members, trajectories, newest_version: unit.newest_version, weights };
      const parts = [env, spec, scoring.environment, group, subrequests] as const;
      scored.push({ members, samples: await samplesOfGroup(...parts) });
    } catch (thrown) {
      failures.push(thrown);
    }
  });
  return scored;
}

/** Each record with the place of its rollout. */
export function pairUp({ members }: Unit, records: readonly ScoreRecord[]): ScoredMember[] {
  return records.flatMap((record, index) => {
    const member = members[index];
    return member === undefined ? [] : [{ ...placeOf(member), record }];
  });
}

function placeOf({ group, slot, attempt }: Member) {
  return { group, slot, attempt };
}
