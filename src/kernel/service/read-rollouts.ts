/** Reads finished and running rollouts: results one page at a time, and one rollout as a whole. */
import type { TokenPrices } from "../../contract/judgement.ts";
import { LIMITS } from "../../contract/limits.ts";
import { publicMessage } from "../../contract/messages.ts";
import type { Outcome, ResultRow, RolloutView } from "../../contract/run.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { Scope } from "../../contract/scope.ts";
import { isTrained, type StoredTurn, type Trajectory } from "../../contract/trajectory.ts";
import { capOf } from "../../core/costs/run-costs.ts";
import { trajectoryOf } from "../../core/rollout/rollout.ts";
import { failuresIn } from "../../core/rollout/tool-failures.ts";
import { creditOf, type ScoreRecord, type StepCredit } from "../../core/rubrics/score.ts";
import { contextTokens } from "../../core/verifiers/metadata.ts";
import type { RunRecord } from "../db/runs.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { rolloutShard } from "../kit/names.ts";
import { Subrequests } from "../kit/subrequests.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { FinishedPage, RunRpc } from "../messages/rpc.ts";
import type { RolloutEntry, RolloutRecord } from "../messages/run-records.ts";
import type { TrajectoryRest } from "../messages/turn-wire.ts";
import { costOf, judgeUsage, lostUsage, metricsOf, reusedUsage } from "../run/report-sums.ts";
import { readTrajectory, trajectoriesIn } from "../trajectory/store.ts";
import { reviewsOfPage } from "./page-reviews.ts";
import { lostRun, notFound, openRun, placeOfId } from "./read-run.ts";

/** Trajectories outside segments that one page may read one by one, within an invocation's subrequests. */
const SINGLE_READS = 400;
/** Attempts to read a trajectory that is being moved. */
const LOOKS = 2;

export interface Address {
  readonly scope: Scope;
  readonly run_id: string;
}

const STEPS_PER_TURN = 100;

/** Steps of processing a trajectory. Its texts are passed on unchanged. */
export function stepsOfTurns(trajectory: Pick<Trajectory, "turns"> | null): number {
  return STEPS_PER_TURN * (1 + (trajectory?.turns.length ?? 0));
}

/** Finished rollouts in the order of their ends. `next`: where to continue; null if nothing more can be read now. */
export async function readResults(
  env: Env,
  scope: Scope,
  runId: string,
  page: { after: number; limit: number; outcome: Outcome | null },
): Promise<Result<{ rows: ResultRow[]; next: number | null }>> {
  const found = await openRun(env, scope, runId);
  if (!found.ok) return found;
  const limit = Math.min(page.limit, LIMITS.resultsPerPage);
  const address = { scope, run_id: runId };
  // A segment may be written between the listing and the reads. Then the page is read again.
  for (let tries = 0; tries < 3; tries += 1) {
    const finished = await found.value.object.finished(page.after, limit, page.outcome);
    if (finished === null) return lostRun(runId);
    const read = await readPage(env, address, finished);
    if (read === null) continue;
    const { lines, reviewsOf } = await reviewsOfPage(
      env,
      scope,
      Array.from(read, ({ entry }) => [entry.id]),
    );
    const fitting = read.slice(0, lines);
    const last = fitting.at(-1)?.entry.finish_seq ?? null;
    const more = finished.cut || fitting.length < finished.rows.length || finished.rows.length === limit;
    const next = more ? last : null;
    const prices = found.value.record.run.spec.money?.policy ?? null;
    const rows: ResultRow[] = [];
    for (const record of fitting) {
      await PROCESS_SCHEDULER.spend(scope.orgId, stepsOfTurns(record.trajectory));
      const reviews = reviewsOf(record.entry.id);
      rows.push({ ...resultOf(record, record.trajectory, prices), ...(reviews && { reviews }) });
    }
    return { ok: true, value: { rows, next } };
  }
  return refuse("in_progress", "the results are being compacted: try again", null);
}

export async function readRollout(env: Env, scope: Scope, id: string): Promise<Result<RolloutView>> {
  const found = await findRollout(env, scope, id);
  if (!found.ok) return found;
  const { run, record, object } = found.value;
  const address = { scope, run_id: run.id };
  const trajectory =
    record.entry.finish_seq === null
      ? await liveTrajectory(env, address, record)
      : await finishedTrajectory(env, address, record, object);
  return { ok: true, value: rolloutView(run, record, trajectory) };
}

interface FoundRollout {
  readonly run: RunRecord["run"];
  readonly record: RolloutRecord;
  readonly object: RunRpc;
}

/** The row of a rollout, as its run has it now. */
export async function findRollout(env: Env, scope: Scope, id: string): Promise<Result<FoundRollout>> {
  const place = placeOfId(env, id);
  if (place === null) return notFound("rollout", id);
  const found = await openRun(env, scope, place.runId);
  if (!found.ok) return notFound("rollout", id);
  const { record: run, object } = found.value;
  const record = await object.rollout(place);
  if (record !== null) return { ok: true, value: { run: run.run, record, object } };
  const gone = (await object.view()) === null;
  return gone ? lostRun(place.runId) : notFound("rollout", id);
}

/** The parts of a trajectory that a rollout's view needs. */
export type ViewedTrajectory = TrajectoryRest & Pick<Trajectory, "turns" | "prompt" | "completion" | "final_state">;

/** A row, with its advantage in its group. */
export type Counted = Pick<RolloutRecord, "entry" | "advantage">;
type Read = Counted & { readonly trajectory: Trajectory | null };

/** The page's trajectories; null if one was moved into a segment meanwhile. */
export async function readPage(
  env: Env,
  address: Address,
  { rows, segments }: Pick<FinishedPage, "rows" | "segments">,
): Promise<Read[] | null> {
  const subrequests = new Subrequests();
  const wanted = new Set(rows.map(({ entry }) => entry.id));
  const folded = await trajectoriesIn(env, address.scope, segments, wanted, { subrequests });
  const single = rows.filter(({ entry: { id, digest } }) => digest !== null && !folded.has(id));
  const cut = single[SINGLE_READS]?.entry.finish_seq ?? Number.POSITIVE_INFINITY;
  const page = rows.filter(({ entry }) => (entry.finish_seq ?? 0) < cut);
  const read = await subrequests.six(single.slice(0, SINGLE_READS), async ({ entry: { id, digest }, text }) => ({
    id,
    trajectory: await readTrajectory(env, address, { digest, text }, subrequests),
  }));
  if (read.some(({ trajectory }) => trajectory === null)) return null;
  for (const { id, trajectory } of read) folded.set(id, trajectory);
  return page.map(({ text: _text, ...record }) => {
    return { ...record, trajectory: folded.get(record.entry.id) ?? null };
  });
}

/**
 * The trajectory of an ended rollout, wherever it is; null if it has none. It may be moved into a segment after the
 * segment was looked up and before its own file is read. Then it is in the segment.
 */
export async function finishedTrajectory(
  env: Env,
  address: Address,
  { entry, text }: RolloutRecord,
  run: Pick<RunRpc, "segmentOf">,
): Promise<Trajectory | null> {
  const { id, digest, finish_seq } = entry;
  if (digest === null) return null;
  const subrequests = new Subrequests();
  for (let look = 1; look <= LOOKS; look += 1) {
    const segment = await run.segmentOf(finish_seq ?? 0);
    const segments = segment === null ? [] : [segment];
    const folded = await trajectoriesIn(env, address.scope, segments, new Set([id]), { subrequests });
    const found = folded.get(id) ?? (await readTrajectory(env, address, { digest, text }, subrequests));
    if (found !== null) return found;
  }
  return null;
}

/** What a rollout that has not ended has stored so far. */
export async function liveTrajectory(
  env: Env,
  { scope, run_id }: Address,
  { entry, text }: RolloutRecord,
): Promise<Trajectory | null> {
  const { digest } = entry;
  if (digest !== null) {
    return await readTrajectory(env, { scope, run_id }, { digest, text }, new Subrequests());
  }
  if (entry.host === null) return null;
  const rollout = await rolloutShard(env, scope, run_id, entry.host).read(entry.id);
  return rollout === null ? null : trajectoryOf(rollout);
}

/** `prices`: the prices of the policy's endpoint, set by its owner; null if there are none. */
export function resultOf(
  { entry, advantage: over }: Counted,
  trajectory: Trajectory | null,
  prices: TokenPrices | null,
): ResultRow {
  const advantage = over ?? null;
  const started = entry.started_at ?? entry.ended_at ?? 0;
  return {
    example_id: entry.example_id ?? entry.group_index,
    prompt: wire(trajectory?.prompt),
    completion: wire(trajectory?.completion),
    ...(trajectory?.answer ? { answer: trajectory.answer } : {}),
    ...(hasInfo(trajectory) ? { info: trajectory?.info } : {}),
    reward: entry.reward,
    advantage,
    error: errorOf(entry),
    timing: { start_time: started / 1000, total: ((entry.ended_at ?? started) - started) / 1000 },
    is_completed: true,
    is_truncated: entry.is_truncated === 1,
    stop_condition: entry.stop_condition,
    metrics: metricsOf(entry),
    ...(trajectory?.tools ? { tool_defs: trajectory.tools.map(({ function: offered }) => ({ ...offered })) } : {}),
    token_usage: {
      input_tokens: entry.prompt_tokens,
      output_tokens: entry.completion_tokens,
      ...(entry.cached_tokens > 0 && { cached_input_tokens: entry.cached_tokens }),
      ...contextOf(trajectory),
    },
    ...lostOf(entry),
    ...judgeTokens(entry),
    cost: costOf(entry, prices),
    rollout_id: entry.id,
    task_key: entry.task_key ?? "",
    group: entry.group_index,
    slot: entry.slot,
    attempt: entry.attempt,
    superseded_by: entry.superseded_by,
    outcome: entry.outcome ?? "failed",
    reason: entry.reason,
    scoring_errors: scoringErrorsOf(entry),
    turns: entry.turns,
    ...toolFailures(trajectory),
  };
}

function toolFailures(trajectory: Trajectory | null): Pick<ResultRow, "tool_failed"> {
  const failures = trajectory && failuresIn(trajectory);
  return failures === null ? {} : { tool_failed: [...failures] };
}

function contextOf(trajectory: Trajectory | null): Partial<ResultRow["token_usage"]> {
  const usages = (trajectory?.turns ?? []).map(({ usage }) => usage);
  return usages.some((usage) => usage !== null) ? contextTokens(usages) : {};
}

function usageOf(
  entry: RolloutEntry,
  trajectory: Pick<Trajectory, "usage"> | null,
  spec: RunSpec,
): RolloutView["usage"] {
  const { prompt_tokens, completion_tokens, cached_tokens = 0 } = trajectory?.usage ?? entry;
  return {
    ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    ...(cached_tokens > 0 && { cached_tokens }),
    ...judgeUsage(entry),
    ...reusedUsage(entry),
    ...lostUsage(entry, capOf(spec) !== null),
  };
}

export function rolloutView(
  { id: run_id, spec }: RunRecord["run"],
  counted: Counted,
  trajectory: ViewedTrajectory | null,
): RolloutView {
  const { entry, advantage = null } = counted;
  const credits = creditsOf(counted);
  return {
    object: "rollout",
    id: entry.id,
    run_id,
    group: entry.group_index,
    slot: entry.slot,
    attempt: entry.attempt,
    superseded_by: entry.superseded_by,
    ...originsOf(trajectory),
    status: entry.status === "running" && trajectory === null ? "queued" : entry.status,
    outcome: entry.outcome,
    reason: entry.reason,
    task_key: trajectory?.task_key ?? entry.task_key,
    example_id: entry.example_id ?? trajectory?.example_id ?? entry.group_index,
    prompt: wire(trajectory?.prompt),
    completion: wire(trajectory?.completion),
    reward: entry.reward,
    advantage,
    scores: JSON.parse(entry.scores ?? "[]") as ScoreRecord["scores"][number][],
    scoring_errors: scoringErrorsOf(entry),
    stop_condition: trajectory?.stop_condition ?? entry.stop_condition,
    is_truncated: trajectory?.is_truncated ?? entry.is_truncated === 1,
    error: errorOf(entry),
    cleanup_errors: [...(trajectory?.cleanup_errors ?? [])],
    failed_calls: (trajectory?.failed_calls ?? []).map(({ at, failure, ...call }) => {
      return { ...call, at: Math.floor(at / 1000), reason: failure };
    }),
    usage: usageOf(entry, trajectory, spec),
    cost: costOf(entry, spec.money?.policy ?? null),
    judgements: judgementsOf(entry),
    turns: (trajectory?.turns ?? []).map((turn) => turnView(turn, credits)),
    state: { ...trajectory?.final_state },
    started_at: seconds(trajectory?.started_at ?? entry.started_at),
    ended_at: seconds(entry.ended_at),
  };
}

function lostOf(entry: RolloutEntry): Pick<ResultRow, "lost_usage"> {
  const { lost } = lostUsage(entry, entry.lost_micros > 0);
  return lost === undefined ? {} : { lost_usage: lost };
}

function judgeTokens(entry: RolloutEntry): Pick<ResultRow, "judge_usage"> {
  const { judge } = judgeUsage(entry);
  if (judge === undefined) return {};
  const { prompt_tokens, completion_tokens, calls, cost_micros } = judge;
  return {
    judge_usage: {
      input_tokens: prompt_tokens,
      output_tokens: completion_tokens,
      calls,
      cost_micros,
    },
  };
}

function judgementsOf({ judgements }: RolloutEntry): RolloutView["judgements"] {
  return JSON.parse(judgements ?? "[]") as RolloutView["judgements"];
}

function originsOf(trajectory: TrajectoryRest | null): Pick<RolloutView, "forked_from" | "rescored_from"> {
  const { forked_from = null, rescored_from = null } = trajectory ?? {};
  return { forked_from, rescored_from };
}

/** Rewards and advantages of single turns from scoring functions, and the values that apply to all other turns. */
export interface Credits {
  readonly steps: readonly Partial<StepCredit>[];
  readonly reward: number | null;
  readonly advantage: number | null;
}

export function creditsOf({ entry: { reward, steps }, advantage: over }: Counted): Credits {
  const advantage = over ?? null;
  return { steps: JSON.parse(steps ?? "[]") as Partial<StepCredit>[], reward, advantage };
}

export function turnView(turn: StoredTurn, { steps, ...worth }: Credits): RolloutView["turns"][number] {
  return {
    index: turn.index,
    prompt: { ...turn.prompt, append: wire(turn.prompt.append) },
    completion: { ...turn.completion },
    finish_reason: turn.finish_reason ?? turn.finish_word ?? null,
    usage: turn.usage,
    latency_ms: turn.latency_ms,
    calls: turn.calls,
    ...(turn.from_cache && { from_cache: true }),
    policy_version: turn.policy_version,
    ...(turn.first_policy_version && { first_policy_version: turn.first_policy_version }),
    ...(turn.dispatch_version !== undefined && { dispatch_version: turn.dispatch_version }),
    ...fleetCallView(turn),
    ...(turn.platform_ms !== undefined && { platform_ms: turn.platform_ms }),
    ...(turn.sent_prompt && { sent_prompt: turn.sent_prompt }),
    is_truncated: turn.is_truncated,
    ...(!isTrained(turn) && { trained: false }),
    ...(turn.tool_failed && { tool_failed: [...turn.tool_failed] }),
    ...creditOf(steps[turn.index] ?? {}, worth),
  };
}

function fleetCallView({ fleet_call }: StoredTurn): Partial<RolloutView["turns"][number]> {
  if (fleet_call === undefined) return {};
  const { replica_id: replica, version } = fleet_call;
  return { replica, ...(version !== undefined && { replica_version: version }) };
}

function wire(messages: Trajectory["prompt"] | undefined): ResultRow["prompt"] {
  return (messages ?? []).map((message) => ({ ...publicMessage(message) }));
}

function hasInfo(trajectory: Trajectory | null): boolean {
  const info = trajectory?.info;
  return info !== null && typeof info === "object" && Object.keys(info).length > 0;
}

function errorOf(entry: RolloutEntry): ResultRow["error"] {
  return entry.error === null ? null : (JSON.parse(entry.error) as ResultRow["error"]);
}

function scoringErrorsOf(entry: RolloutEntry): ResultRow["scoring_errors"] {
  return JSON.parse(entry.scoring_errors ?? "[]") as ResultRow["scoring_errors"];
}

function seconds(at: number | null | undefined): number | null {
  return at == null ? null : Math.floor(at / 1000);
}
