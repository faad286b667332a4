/**
 * The questions that the judges of a rollout were asked. They are not stored: the rubric runs again over the stored
 * trajectories, with the judgements that it got, and asks the same questions again. A question is identified by a hash
 * of its content, so what is returned is exactly what was sent. Nothing is called: neither judges nor other servers.
 */
import type { Judgement } from "../../contract/judgement.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { beginningsOf, type JudgeQuestion, type JudgeQuestionList } from "../../contract/turns.ts";
import type { JudgeAsk, JudgeResult } from "../../core/rubrics/judges.ts";
import { scoringGroupWork } from "../../core/rubrics/work.ts";
import type { RunRecord } from "../db/runs.ts";
import { outsideQuarantine } from "../environment/quarantine.ts";
import { Subrequests } from "../kit/subrequests.ts";
import type { Result } from "../messages/refusal.ts";
import type { RunRpc } from "../messages/rpc.ts";
import type { RolloutRecord } from "../messages/run-records.ts";
import { judgesOf, openScoring, QUEUE_WORK, type Scoring, scoreInTime } from "../scoring/scoring-pass.ts";
import { beginInTurn } from "../scoring/scoring-turns.ts";
import { findRollout, finishedTrajectory } from "./read-rollouts.ts";
import { placeOfId } from "./read-run.ts";

/** A function may ask a question that depends on an earlier judgement. Later ones than these are not built. */
const PASSES = 8;

type Asked = ReadonlyMap<string, JudgeAsk>;

/** One question for each of the rollout's judgements, in their order. */
export async function readJudgeQuestions(env: Env, scope: Scope, id: string): Promise<Result<JudgeQuestionList>> {
  const found = await findRollout(env, scope, id);
  if (!found.ok) return found;
  const { run, record, object } = found.value;
  const judgements = JSON.parse(record.entry.judgements ?? "[]") as Judgement[];
  const asked = judgements.length === 0 ? new Map() : await askAgain(env, { scope, run }, record, object, judgements);
  const data = judgements.map((judgement) => questionOf(judgement, asked));
  const [first_id, last_id] = data.length === 0 ? [null, null] : [data[0]?.key ?? null, data.at(-1)?.key ?? null];
  return { ok: true, value: { object: "list", data, first_id, last_id, has_more: false } };
}

function questionOf({ judge, model, key, pass, left_out, reply }: Judgement, asked: Asked): JudgeQuestion {
  const messages = asked.get(key)?.messages;
  return {
    ...{ judge, model, key, pass, left_out },
    messages: messages === undefined ? null : beginningsOf(messages),
    messages_left_out: Math.max(0, (messages?.length ?? 0) - LIMITS.shownItems),
    ...(reply !== undefined && { reply }),
  };
}

interface Played {
  readonly scope: Scope;
  readonly run: RunRecord["run"];
}

/** The questions by their keys. Empty if the code of the run, or a trajectory, is not there any more. */
async function askAgain(
  env: Env,
  { scope, run }: Played,
  record: RolloutRecord,
  object: RunRpc,
  judgements: readonly Judgement[],
): Promise<Asked> {
  const spec = { ...run.spec, scope };
  const scoring = await openScoring(env, spec, new Subrequests());
  const members = await membersOf(env, { scope, run }, record, object);
  if (scoring === null || members.length === 0) return new Map();
  const known: Record<string, JudgeResult> = {};
  const asked = new Map<string, JudgeAsk>();
  const results = new Map(judgements.map((judgement) => [judgement.key, resultOf(judgement)]));
  for (let pass = 0; pass < PASSES; pass += 1) {
    const pending = await pendingOf(scoring, scope.orgId, members, { named: judgesOf(spec), known: { ...known } });
    const fresh = pending.filter(({ key }) => !asked.has(key));
    if (fresh.length === 0) break;
    for (const ask of fresh) {
      asked.set(ask.key, ask);
      known[ask.key] = results.get(ask.key) ?? NOT_THERE;
    }
  }
  return asked;
}

const NOT_THERE: JudgeResult = { value: null, error: "it belongs to another rollout", retryable: false };

function resultOf({ verdict, reason, error }: Judgement): JudgeResult {
  if (verdict === null) return { value: null, error: error ?? "there is none", retryable: false };
  return { value: verdict, reason };
}

interface Judges {
  readonly named: readonly string[];
  readonly known: Readonly<Record<string, JudgeResult>>;
}

async function pendingOf(
  scoring: Scoring,
  org: string,
  members: readonly Trajectory[],
  judges: Judges,
): Promise<readonly JudgeAsk[]> {
  const work = scoringGroupWork(QUEUE_WORK.light.scoringGroupSteps);
  const { result } = await beginInTurn(org, work, (pause, waited) =>
    outsideQuarantine(org, () => scoreInTime({ ...scoring, fetch }, members, { judges, work, pause, waited })),
  );
  return (await result).pending;
}

const fetch: Scoring["fetch"] = () => {
  return Promise.reject(new Error("no server is called while questions to judges are read"));
};

/**
 * The trajectories that were scored together: of the rollout, or of all attempts of its group that count. Empty if one
 * is missing, if they are too large to be read at once, or if the group has more than `MOST_MEMBERS` attempts.
 */
async function membersOf(
  env: Env,
  { scope, run }: Played,
  record: RolloutRecord,
  object: RunRpc,
): Promise<readonly Trajectory[]> {
  const records = run.spec.whole_groups ? await groupOf(env, record, object) : [record];
  const characters = records.reduce((sum, { entry }) => sum + entry.bytes, 0);
  if (characters > LIMITS.scoringCharacters) return [];
  const trajectories: Trajectory[] = [];
  for (const one of records) {
    const trajectory = await finishedTrajectory(env, { scope, run_id: run.id }, one, object);
    if (trajectory === null) return [];
    trajectories.push(trajectory);
  }
  return trajectories;
}

/** Each member is read by itself, one after another. */
const MOST_MEMBERS = 32;

async function groupOf(env: Env, { entry }: RolloutRecord, object: RunRpc): Promise<readonly RolloutRecord[]> {
  const looked = await object.look("group", entry.group_index);
  const scored = (looked?.found?.members ?? []).filter(({ superseded_by, outcome }) => {
    return superseded_by === null && (outcome === "scored" || outcome === "unscored");
  });
  if (scored.length > MOST_MEMBERS) return [];
  const records: RolloutRecord[] = [];
  for (const { id } of scored) {
    const place = placeOfId(env, id);
    const record = place === null ? null : await object.rollout(place);
    if (record !== null) records.push(record);
  }
  return records;
}
