/**
 * Consumer of `rollout-scores`: scores scoring groups from their trajectories, and sends all scores of a message in one
 * call. If the trajectories exceed the memory limit, the groups are scored in slices; groups whose scoring calls other
 * services are scored in slices of as many as there are connections. Groups that need much work go to
 * `rollout-scores-heavy` and are scored there; after one of a run did, so do the others of that run, without a try
 * here.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { fetches } from "../../core/environments/capabilities.ts";
import type { JudgeAsk } from "../../core/rubrics/judges.ts";
import type { ScoreRecord } from "../../core/rubrics/score.ts";
import { scoringGroupWork, type Work } from "../../core/rubrics/work.ts";
import { runOrGatherer } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { GatheredRpc } from "../messages/gathered.ts";
import type { JudgementRequest } from "../messages/judge-outcome.ts";
import type { GroupSamples } from "../messages/training-wire.ts";
import type { Member, RunSpec, ScoredMember, ScoresMessage, ScoringGroup } from "../messages/wire.ts";
import { scoresQueue, sendAll } from "../run/queues.ts";
import { samplesOfGroup, weightsOf } from "./group-samples.ts";
import { BatchMemory, NO_MEMORY_MS, trajectoryMemory } from "./held-trajectories.ts";
import {
  hasHeavyScoringGroups,
  judgementRequestOf,
  judgesOf,
  noteHeavyScoringGroup,
  openScoring,
  QUEUE_WORK,
  type QueueWork,
  type Scoring,
  scoreInTurn,
  trajectoriesOf,
} from "./scoring-pass.ts";

/** Returns the steps of counted work that it took. */
export async function scoreScoringGroups(
  env: Env,
  message: ScoresMessage,
  subrequests: Subrequests,
  batch: BatchMemory = new BatchMemory(),
): Promise<number> {
  if (!message.heavy && hasHeavyScoringGroups(message.run_id, QUEUE_WORK.light.scoringGroupSteps)) {
    await sendAll(env.ROLLOUT_SCORES_HEAVY, [{ ...message, heavy: true }], subrequests);
    return 0;
  }
  const run = runOf(env, message);
  const waiting = await subrequests.object(() => run.scoringGroupsToScore(message.units));
  if (waiting === null || waiting.units.length === 0) return 0;
  const { spec } = waiting;
  const scoring = await openScoring(env, spec, subrequests);
  // The pinned code is not deployed any more; reconciliation ends these as unscored.
  if (scoring === null) return 0;
  const failures: unknown[] = [];
  const limits = message.heavy ? QUEUE_WORK.heavy : QUEUE_WORK.light;
  let [left, steps] = [message.units, 0];
  for (let { units: scoringGroups } = waiting; scoringGroups.length > 0; ) {
    const pass = { env, message, spec, scoring, subrequests, failures, limits, batch };
    const slice = await scoreWithMemory(pass, scoringGroups.slice(0, atOnce(scoring)));
    await handOver(env, message, slice, subrequests);
    left = left.filter((number) => !slice.tried.has(number));
    steps += slice.steps;
    if (left.length === 0) break;
    scoringGroups = (await subrequests.object(() => run.scoringGroupsToScore(left, true, slice.full)))?.units ?? [];
    if (goesOn(slice, steps, limits)) continue;
    if (scoringGroups.length > 0) await sendBack(env, { ...message, units: left }, slice, subrequests);
    break;
  }
  // The others are scored; when the message is delivered again, the run names only the unscored ones.
  if (failures.length > 0) throw failures[0];
  return steps;
}

/** Messages of other organisations in the queue come first. Without memory it waits for a while. */
async function sendBack(
  env: Env,
  message: ScoresMessage,
  { full = false }: ScoredSlice,
  subrequests: Subrequests,
): Promise<void> {
  const delay = full ? NO_MEMORY_MS / 1000 : 0;
  await sendAll(scoresQueue(env, message), [message], subrequests, () => delay);
}

/** Sends scores to the run, and scoring groups that exceed their queue's work limit to the other queue. */
async function handOver(
  env: Env,
  message: ScoresMessage,
  { scored, heavy }: ScoredSlice,
  subrequests: Subrequests,
): Promise<void> {
  if (heavy.length > 0) {
    await sendAll(env.ROLLOUT_SCORES_HEAVY, [{ ...message, units: heavy, heavy: true }], subrequests);
  }
  const members = scored.flatMap((group) => group.members);
  const samples = scored.flatMap((group) => group.samples ?? []);
  if (members.length === 0) return;
  const run = runOf(env, message);
  await subrequests.object(() => run.scored(members, ...(samples.length > 0 ? [samples] : [])));
}

function runOf(env: Env, message: ScoresMessage): GatheredRpc {
  return runOrGatherer(env, message, message.gatherers, message.units[0] ?? 0);
}

function atOnce({ environment }: Scoring): number | undefined {
  return fetches(environment.description.needs) ? LIMITS.parallelFetches : undefined;
}

/** The result of a scoring group: its members' scores, and in a training run its samples. */
interface ScoredScoringGroup {
  readonly members: readonly ScoredMember[];
  readonly samples: GroupSamples | null;
}

/**
 * `steps`: counted work. `full`: there was no memory. Groups not in `tried` are left for another slice, `heavy` ones for
 * the other queue.
 */
interface ScoredSlice {
  readonly scored: readonly ScoredScoringGroup[];
  readonly heavy: readonly number[];
  readonly tried: ReadonlySet<number>;
  readonly steps: number;
  readonly full?: boolean;
}

/** A group's records; if they need judges first, the request for those. The questions themselves are dropped. */
interface Pass {
  readonly unit: ScoringGroup;
  readonly trajectories: readonly Trajectory[];
  readonly records: readonly ScoreRecord[];
  readonly request: JudgementRequest | null;
  readonly work: Work;
}

/** What the scoring groups of a message share. */
interface Message {
  readonly env: Env;
  readonly message: ScoresMessage;
  readonly spec: RunSpec;
  readonly scoring: Scoring;
  readonly subrequests: Subrequests;
  readonly failures: unknown[];
  readonly limits: QueueWork;
  readonly batch: BatchMemory;
}

function goesOn({ full = false }: ScoredSlice, steps: number, { sliceSteps }: QueueWork): boolean {
  return !full && steps < sliceSteps;
}

/** The result is `full` and empty if the trajectories do not fit into memory. */
async function scoreWithMemory(message: Message, scoringGroups: readonly ScoringGroup[]): Promise<ScoredSlice> {
  const memory = await message.batch.take(() => trajectoryMemory(message.env, message.spec, scoringGroups));
  if (memory === null) return { scored: [], heavy: [], tried: new Set(), steps: 0, full: true };
  return await scoreSlice(message, scoringGroups, () => memory.stay(Date.now())).finally(memory.leave);
}

/** Scoring groups that could not be read are left for the next delivery; the errors are in `failures`. */
async function scoreSlice(
  message: Message,
  scoringGroups: readonly ScoringGroup[],
  stay: () => void,
): Promise<ScoredSlice> {
  const { env, spec, scoring, subrequests, failures, limits } = message;
  const tried = new Set<number>();
  const works: Work[] = [];
  const begun: Promise<Pass | null>[] = [];
  const steps = () => works.reduce((sum, work) => sum + work.steps, 0);
  for (const scoringGroup of scoringGroups) {
    if (steps() >= limits.sliceSteps) break;
    stay();
    tried.add(scoringGroup.unit);
    const work = scoringGroupWork(limits.scoringGroupSteps);
    works.push(work);
    try {
      const trajectories = await trajectoriesOf(env, spec, scoringGroup, subrequests);
      const judges = { named: judgesOf(spec), known: {} };
      const turn = await scoreInTurn(env, spec, scoringGroup, scoring, trajectories, { judges, work });
      begun.push(
        turn.result.then(
          (scored) =>
            scored && {
              unit: scoringGroup,
              trajectories,
              records: scored.records,
              request: requestOf(scoringGroup, scored.pending),
              work,
            },
          (thrown: unknown) => noted(failures, thrown),
        ),
      );
      await turn.idle;
    } catch (thrown) {
      noted(failures, thrown);
    }
  }
  const passes = (await Promise.all(begun)).filter((pass) => pass !== null);
  const [heavy, whole] = [passes.filter(isTooHeavy), passes.filter((pass) => !isTooHeavy(pass))];
  for (const { work } of heavy) noteHeavyScoringGroup(spec.run_id, work.steps);
  const scored = await settlePasses(message, whole);
  return { scored, heavy: heavy.map(({ unit: scoringGroup }) => scoringGroup.unit), tried, steps: steps() };

  function requestOf({ unit: number }: ScoringGroup, pending: readonly JudgeAsk[]): JudgementRequest | null {
    return pending.length > 0 ? judgementRequestOf(spec, number, pending) : null;
  }

  /** A light queue may have refused some work: these records are incomplete, and a heavy queue must compute them. */
  function isTooHeavy({ work }: Pass): boolean {
    return limits === QUEUE_WORK.light && work.exceeded;
  }
}

function noted(failures: unknown[], thrown: unknown): null {
  failures.push(thrown);
  return null;
}

async function settlePasses(message: Message, passes: readonly Pass[]): Promise<ScoredScoringGroup[]> {
  const { env, spec, scoring, subrequests, failures } = message;
  const requests = passes.flatMap(({ request, work }) => {
    if (request === null) return [];
    return work.steps > QUEUE_WORK.light.scoringGroupSteps ? { ...request, heavy: true } : request;
  });
  // These have no scores before their judges have answered.
  if (requests.length > 0) {
    const run = runOf(env, message.message);
    await subrequests.object(() => run.requestJudgements(requests));
  }
  const scored: ScoredScoringGroup[] = [];
  const referenced: JudgementRequest[] = [];
  const settled = passes.filter(({ request }) => request === null);
  const rollouts = settled.flatMap(({ trajectories }) => trajectories);
  const weights = settled.length > 0 ? await weightsOf(env, spec, rollouts, subrequests) : undefined;
  await subrequests.six(settled, async ({ unit: scoringGroup, trajectories, records }) => {
    const members = pairUp(scoringGroup, records);
    try {
      const group = { members, trajectories, newest_version: scoringGroup.newest_version, weights };
      const parts = [env, spec, scoring.environment, group, subrequests] as const;
      const { samples, pending } = await samplesOfGroup(...parts);
      if (pending.length === 0) scored.push({ members, samples });
      else referenced.push(judgementRequestOf(spec, scoringGroup.unit, pending));
    } catch (thrown) {
      failures.push(thrown);
    }
  });
  // These are scored, but their samples lack reference logprobs: the consumer of judgements requests them.
  if (referenced.length > 0) {
    const run = runOf(env, message.message);
    await subrequests.object(() => run.requestJudgements(referenced));
  }
  return scored;
}

/** Adds its rollout's slot to each record. */
export function pairUp({ members }: ScoringGroup, records: readonly ScoreRecord[]): ScoredMember[] {
  return records.flatMap((record, index) => {
    const member = members[index];
    return member === undefined ? [] : [{ ...placeOf(member), record }];
  });
}

function placeOf({ group, slot, attempt }: Member) {
  return { group, slot, attempt };
}
