/**
 * One pass of a run's rubric over scoring groups: what it needs, and its time limit. A scoring function whose promise
 * never settles must not delay other groups: its own group ends without a score, with the reason.
 */

import { LIMITS } from "../../contract/limits.ts";
import { REFERENCE_JUDGE } from "../../contract/training-request.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { capOf } from "../../core/costs/run-costs.ts";
import type { EnvironmentCode, GroupToScore, ScoringHost, Secrets } from "../../core/protocol/environment-code.ts";
import type { JudgeAsk } from "../../core/rubrics/judges.ts";
import { withReported } from "../../core/rubrics/reported.ts";
import type { AskedScores } from "../../core/rubrics/score.ts";
import { WORK_LIMITS, type Work } from "../../core/rubrics/work.ts";
import type { StepTimer, TimeUp } from "../../core/step-timer.ts";
import { openMeans, scoringFetch } from "../environment/capabilities.ts";
import { pinnedEnvironment } from "../environment/environments.ts";
import { GIVEN_UP, outsideQuarantine, Quarantine } from "../environment/quarantine.ts";
import { LruCache } from "../kit/caches.ts";
import { idsOf } from "../kit/log.ts";
import { runObject } from "../kit/names.ts";
import { sha256Hex } from "../kit/secrets.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { JudgementRequest } from "../messages/judge-outcome.ts";
import type { RunSpec, ScoringGroup } from "../messages/wire.ts";
import { readTrajectory } from "../trajectory/store.ts";
import { askBound } from "./ask-judge.ts";
import { type Begun, beginInTurn, type Pause } from "./scoring-turns.ts";

/**
 * Work limits of a queue: the steps of one scoring group per pass, and the steps after which finished scores are sent
 * and the rest goes to the end of the queue. A group that exceeds the limit of a light queue is scored in a heavy one,
 * where it delays only similar groups, since a group is not divided between invocations.
 */
export const QUEUE_WORK = {
  light: { scoringGroupSteps: 4_000_000, sliceSteps: 5_000_000 },
  heavy: { scoringGroupSteps: WORK_LIMITS.scoringGroupSteps, sliceSteps: 20_000_000 },
} as const;
/** By run, the most steps after which a scoring pass was stopped: other groups of the run need about as many. */
const needed = new LruCache<number>(10_000);

/** `steps`: what scoring took beyond its limit. */
export function noteHeavyScoringGroup(run_id: string, steps: number): void {
  needed.set(run_id, Math.max(steps, needed.get(run_id) ?? 0));
}

/** True if a scoring pass of this run was stopped after more than `steps` steps, in this process. */
export function hasHeavyScoringGroups(run_id: string, steps: number): boolean {
  return (needed.get(run_id) ?? 0) > steps;
}

export type QueueWork = (typeof QUEUE_WORK)[keyof typeof QUEUE_WORK];

export interface Scoring {
  readonly environment: EnvironmentCode;
  readonly fetch: ScoringHost["fetch"];
  readonly secrets: Secrets;
}

/** Null if the code that the run pinned is not in this deployment. */
export async function openScoring(
  env: Env,
  spec: Pick<RunSpec, "scope" | "environment" | "environment_args" | "needs">,
  subrequests: Subrequests,
): Promise<Scoring | null> {
  const environment = await pinnedEnvironment(env, spec);
  if (environment === null) return null;
  const now = () => Date.now();
  const opened = await openMeans(env, spec, environment.description.needs, now());
  return { environment, fetch: scoringFetch(env, now, opened, subrequests), secrets: opened.secrets };
}

/** The members' trajectories, in their order. Throws if one is missing: it may have been compacted meanwhile. */
export function trajectoriesOf(
  env: Env,
  spec: RunSpec,
  scoringGroup: ScoringGroup,
  subrequests: Subrequests,
): Promise<Trajectory[]> {
  return subrequests.six(scoringGroup.members, async (member) => {
    const trajectory = await readTrajectory(env, spec, member, subrequests);
    if (trajectory === null) throw new Error(`trajectory of ${member.rollout_id} is missing`);
    return trajectory;
  });
}

interface TimedPass extends Pick<ScoringHost, "work" | "pause"> {
  readonly judges?: GroupToScore["judges"];
  /** Milliseconds spent waiting for other work, which do not count as its own time. */
  readonly waited?: () => number;
}

export async function scoreInTime(
  { environment, fetch, secrets }: Scoring,
  members: readonly Trajectory[],
  { judges = null, work, pause, waited = () => 0 }: TimedPass = {},
  limitMs: number = LIMITS.scoringMs,
): Promise<AskedScores> {
  const now = () => Date.now();
  const timer: ScoringHost["timer"] = (what) => timerOf(limitMs, what, waited);
  const host = { now, fetch, hash: sha256Hex, timer, pause, ...(work && { work }) };
  const asked = await environment.score({ members, secrets, judges }, host);
  // Until all judgements are known the scores are void.
  if (asked.pending.length > 0) return asked;
  return { ...asked, records: asked.records.map((record, at) => withReported(record, members[at])) };
}

/** A pass over one scoring group; alone in the process if it is quarantined. Null: its run has given it up. */
export async function scoreAlone<T>(
  env: Env,
  { scope, run_id }: RunSpec,
  { unit: scoringGroup, quarantine }: ScoringGroup,
  scoring: Scoring,
  pass: (scoring: Scoring) => Promise<T>,
): Promise<T | null> {
  if (quarantine !== true) return await outsideQuarantine(scope.orgId, () => pass(scoring));
  const watched = new Quarantine(
    env,
    () => runObject(env, scope, run_id),
    `unit/${scoringGroup}`,
    idsOf({ scope, run_id }),
  );
  const passed = await watched.run(() => pass({ ...scoring, fetch: watched.watchedFetch(scoring.fetch) }));
  if (passed === GIVEN_UP) return null;
  await watched.end();
  return passed;
}

/**
 * The same, after waiting for a scheduling turn in the process (scoring-turns.ts). Null if the run has given the group
 * up.
 */
export function scoreInTurn(
  env: Env,
  spec: RunSpec,
  scoringGroup: ScoringGroup,
  scoring: Scoring,
  trajectories: readonly Trajectory[],
  { judges, work }: Pick<GroupToScore, "judges"> & { readonly work: Work },
): Promise<Begun<AskedScores | null>> {
  const pass = (pause: Pause, waited: () => number) =>
    scoreAlone(env, spec, scoringGroup, scoring, (watched) =>
      scoreInTime(watched, trajectories, { judges, work, pause, waited }),
    );
  // A consumer serves all organisations, so it goes before rollouts that objects of one organisation score in place.
  return beginInTurn(spec.scope.orgId, work, pass, { first: true });
}

function timerOf(limitMs: number, what: string, waited: () => number): StepTimer {
  const { promise: over, resolve } = Promise.withResolvers<TimeUp>();
  const arm = (ms: number, excused: number) =>
    setTimeout(() => {
      const more = waited() - excused;
      if (more > 0) timer = arm(more, waited());
      else resolve({ message: `${what} did not finish within ${limitMs / 1000} s`, whole: false });
    }, ms);
  let timer = arm(limitMs, waited());
  return { over, stop: () => clearTimeout(timer) };
}

/** The judges that may be called. */
export function judgesOf({ judges = {} }: RunSpec): readonly string[] {
  return Object.keys(judges).filter((name) => name !== REFERENCE_JUDGE);
}

/** The request names the endpoint of the ask that may be made first: a scoring group has a lease of one at a time. */
export function judgementRequestOf(
  spec: RunSpec,
  scoringGroup: number,
  pending: readonly JudgeAsk[],
  notBefore: (key: string) => number = () => 0,
): JudgementRequest {
  const { judges } = spec;
  const [first, ...others] = [...pending].sort((a, b) => notBefore(a.key) - notBefore(b.key));
  const endpointOf = (ask: JudgeAsk | undefined) => judges?.[ask?.judge ?? ""]?.endpoint_id ?? "";
  const endpoint_id = endpointOf(first);
  const alike = others.filter((other) => endpointOf(other) === endpoint_id);
  const not_before = notBefore(first?.key ?? "");
  const calls = 1 + alike.length;
  const bound = first === undefined ? {} : boundOf(spec, [first, ...alike]);
  return { unit: scoringGroup, endpoint_id, calls, ...(not_before > 0 && { not_before }), ...bound };
}

/** Each ask may be made this often during one claim of its scoring group. */
function boundOf(spec: RunSpec, asks: readonly JudgeAsk[]): Pick<JudgementRequest, "bound_micros"> {
  if (capOf(spec) === null) return {};
  const once = asks.reduce((sum, ask) => sum + askBound(spec, ask), 0);
  return { bound_micros: Math.min(Number.MAX_SAFE_INTEGER, once * (spec.limits.max_retries + 1)) };
}
