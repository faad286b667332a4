/**
 * Plays one rollout in this process, without platform and network; the model is a function.
 *
 * Invariants. The loop is the platform's: the same state machine, the same harness, the same scoring. This module makes
 * no decision about a rollout. The model is outside of the rollout, so a restart does not affect it.
 */
import {
  EnvError,
  OverlongPromptError,
  RolloutError,
  type SerializedError,
  serializeError,
} from "../../contract/errors.ts";
import type { JsonObject } from "../../contract/json.ts";
import {
  type FinishReason,
  type Message,
  type Messages,
  type ToolDefinition,
  textOf,
  type Usage,
} from "../../contract/messages.ts";
import type { ModelResponse, Trajectory } from "../../contract/trajectory.ts";
import { NO_JOURNAL, RolloutSql, type SqlRunner } from "../environments/rollout-sql.ts";
import type {
  EnvironmentCode,
  EnvironmentDescription,
  MadeTask,
  OfferedTools,
  Player,
  PlayerDescription,
  RolloutHost,
} from "../protocol/environment-code.ts";
import { readJudgement } from "../rubrics/judgement.ts";
import type { JudgeAsk, JudgeResult } from "../rubrics/judges.ts";
import { type ScoreRecord, scoreJudged } from "../rubrics/score.ts";
import { databaseOf, type SqliteHandle } from "../sql/database.ts";
import type { StepTimer } from "../step-timer.ts";
import {
  advance,
  type Event,
  newRollout,
  nextEffect,
  outstandingPrompt,
  type Rollout,
  trajectoryOf,
} from "./rollout.ts";

export interface PlayOptions {
  /** The largest turns, in characters: a larger play is truncated. Default: those of the platform. */
  readonly mostCharacters?: number;
  readonly model: TestModel;
  /** After every step: stores the rollout, drops the player and its handles, and continues with a new one. */
  readonly restartAfterEachTurn?: boolean;
  /**
   * A second instance of the environment. Restarts alternate between the two, and it scores, so that state kept on one
   * instance instead of the rollout shows up as a difference.
   */
  readonly secondInstance?: EnvironmentCode;
  readonly seed?: number;
  /** Epoch milliseconds; 0 by default. */
  readonly now?: () => number;
  /** Resolves at that time (epoch milliseconds). It ends a call that never answers, if there is a time limit. */
  readonly until?: (at: number) => Promise<void>;
  /** Answers for the rubric's judge; for several judges, one function per name. Without it judges give no judgement. */
  readonly judge?: TestJudges;
  /** Answers for all judges of the environment, instead of `judge`. */
  readonly answer?: JudgeAnswers;
  /**
   * Opens an empty database for the rollout if the environment needs sql: `() => new DatabaseSync(":memory:")` of
   * node:sqlite.
   */
  readonly openSqlite?: () => SqliteHandle;
  /** Limits the time of a step of the environment; by default a step may take for ever. `what`: its name. */
  readonly timer?: (what: string) => StepTimer;
}

export interface RolloutReport {
  /** Null if the rollout failed or a reward function gave no score. */
  readonly reward: number | null;
  /** Every score by name, rewards and metrics alike. */
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly scoring_errors: ScoreRecord["scoring_errors"];
  /** The environment's own fields, at the end of the rollout. */
  readonly state: JsonObject;
  readonly completion: Messages;
  readonly stop_condition: string | null;
  readonly is_truncated: boolean;
  readonly error: SerializedError | null;
  readonly cleanup_errors: readonly SerializedError[];
  /** Model calls answered. */
  readonly turns: number;
  /** The whole result of the rollout, as the platform would store it. */
  readonly trajectory: Trajectory;
}

/**
 * Throws what the model throws, if handles cannot be closed at a restart, and if a call of the code is rejected; all
 * other errors are in the report.
 */
export async function playTask(
  code: EnvironmentCode,
  made: Pick<MadeTask, "task" | "member">,
  options: PlayOptions,
): Promise<RolloutReport> {
  const done = await drive(code, made, options);
  const trajectory = trajectoryOf(done);
  const scorer = options.restartAfterEachTurn ? (options.secondInstance ?? code) : code;
  const judges = options.answer ? { named: code.description.judges, answer: options.answer } : scripted(options.judge);
  const [record] = (await scorePlayed(scorer, [trajectory], judges, options)) ?? [];
  return {
    reward: record?.reward ?? null,
    metrics: Object.fromEntries((record?.scores ?? []).map(({ name, score }) => [name, score])),
    scoring_errors: record?.scoring_errors ?? [],
    state: trajectory.final_state,
    completion: trajectory.completion,
    stop_condition: trajectory.stop_condition,
    is_truncated: trajectory.is_truncated,
    error: trajectory.error,
    cleanup_errors: trajectory.cleanup_errors,
    turns: done.turns.length,
    trajectory,
  };
}

/** The environment that plays the rows of this member. */
export function playerOf({ players }: EnvironmentDescription, member: string | null): PlayerDescription | undefined {
  return players.find((player) => player.member === member);
}

async function drive(
  code: EnvironmentCode,
  { task, member }: Pick<MadeTask, "task" | "member">,
  options: PlayOptions,
): Promise<Rollout> {
  const timeoutMs = playerOf(code.description, member)?.timeoutMs ?? null;
  const begun = newRollout({ ...task, id: "rollout", task_key: "task" }, now(options));
  const { mostCharacters: most_characters } = options;
  let at: Progress = { rollout: { ...begun, ...(most_characters && { most_characters }) }, offered: null };
  let [current, other] = [code, options.secondInstance ?? code];
  const host = openHost(code, options);
  let player = await openPlayer(current, at.rollout, host, options);
  while (at.rollout.phase !== "done") {
    const hooked = at.rollout.phase !== "sample";
    at = await step(current, player, at, timeoutMs, options);
    if (options.restartAfterEachTurn !== true) continue;
    const fault = await player.dispose();
    if (fault !== null) throw new Error(`closeLive failed at a restart: ${fault.message}`);
    at = { rollout: JSON.parse(JSON.stringify(at.rollout)) as Rollout, offered: null };
    // The instances alternate after every hook and not after every step, since half of the steps are the model's.
    if (hooked) [current, other] = [other, current];
    player = await openPlayer(current, at.rollout, host, options);
  }
  return at.rollout;
}

interface Progress {
  readonly rollout: Rollout;
  /** The tools for the next call; null if they are not known. */
  readonly offered: OfferedTools | null;
}

async function step(
  code: EnvironmentCode,
  player: Player,
  { rollout, offered }: Progress,
  timeoutMs: number | null,
  options: PlayOptions,
): Promise<Progress> {
  const effect = nextEffect(rollout);
  const late = timeoutMs !== null && now(options) - rollout.started_at >= timeoutMs;
  if (late && effect.kind !== "close") return { rollout: advance(rollout, { type: "timed_out" }), offered };
  switch (effect.kind) {
    case "setup":
    case "reply":
    case "close": {
      const { event, tools } = await player.perform(effect, rollout);
      return { rollout: advance(rollout, event), offered: tools };
    }
    case "sample": {
      const sent = advance(rollout, { type: "sent" });
      const event = await askModel(rollout, offered ?? (await code.tools(rollout)), timeoutMs, options);
      return { rollout: advance(sent, event), offered };
    }
    case "done":
      return { rollout, offered };
  }
}

/** Opens a player for a rollout that is played in this process. */
export function openPlayer(
  code: EnvironmentCode,
  { id, task, info }: Rollout,
  host: RolloutHost,
  { seed = 0 }: Pick<PlayOptions, "seed">,
): Promise<Player> {
  return code.play({ rollout_id: id, row: { task, info }, seed, secrets: {} }, host);
}

/** The host of one rollout. Its database outlives a restart, as the platform's does. */
export function openHost(
  { description }: EnvironmentCode,
  options: Pick<PlayOptions, "now" | "openSqlite" | "timer">,
): RolloutHost {
  const { openSqlite } = options;
  const uses = description.needs.includes("sql") && openSqlite !== undefined;
  const sql: SqlRunner = uses ? new RolloutSql(databaseOf(openSqlite()), NO_JOURNAL) : NO_SQL;
  const timer = timerOf(options);
  return { ...scoringHost(options), sql, unrepeatable: () => undefined, timer: (_stage, what) => timer(what) };
}

function scoringHost(options: Pick<PlayOptions, "now">): Pick<RolloutHost, "now" | "fetch"> {
  const fetch = () => Promise.reject(new EnvError("fetch is declared but not available here"));
  return { now: () => now(options), fetch };
}

const NO_SQL: SqlRunner = {
  exec: () => {
    throw new EnvError("sql is declared but not available here: give runRollout openSqlite");
  },
};

function timerOf({ timer }: Pick<PlayOptions, "timer">): (what: string) => StepTimer {
  return timer ?? (() => ({ over: new Promise(() => undefined), stop: () => undefined }));
}

/** The event of a call, as on the platform: an answer, an error of the endpoint, or the end of the rollout's time. */
async function askModel(
  rollout: Rollout,
  tools: OfferedTools,
  timeoutMs: number | null,
  options: PlayOptions,
): Promise<Event> {
  const turn = rollout.turns.length;
  if ("error" in tools) return { type: "failed", failure: "environment", error: tools };
  const request = { messages: outstandingPrompt(rollout), tools, turn };
  try {
    const reply = await inTime(options.model(request), rollout, timeoutMs, options);
    if (reply === null) return { type: "timed_out" };
    return { type: "answered", response: responseOf(reply, turn), at: now(options) };
  } catch (thrown) {
    if (!(thrown instanceof RolloutError)) throw thrown;
    if (thrown instanceof OverlongPromptError) return { type: "prompt_too_long" };
    return { type: "failed", failure: "provider", error: serializeError(thrown) };
  }
}

/** Null if the rollout's time ended first. */
async function inTime(
  answer: ReturnType<TestModel>,
  rollout: Rollout,
  timeoutMs: number | null,
  { until }: PlayOptions,
): Promise<Reply | null> {
  if (timeoutMs === null || until === undefined) return answer;
  const late = until(rollout.started_at + timeoutMs).then(() => null);
  return Promise.race([answer, late]);
}

function now(options: Pick<PlayOptions, "now">): number {
  return options.now?.() ?? 0;
}

/** The reply of a model that is a function, as that of an endpoint. */
export function responseOf(reply: Reply, turn: number): ModelResponse {
  const message = messageOf(reply, turn);
  return {
    id: null,
    model: "scripted",
    message,
    finish_reason: finishOf(reply, message),
    usage: usageOf(reply),
    prompt_ids: null,
    completion_ids: null,
    completion_logprobs: null,
    policy_version: null,
    latency_ms: 0,
  };
}

function finishOf(reply: Reply, { tool_calls }: Message): FinishReason {
  const usual = tool_calls === undefined ? "stop" : "tool_calls";
  return typeof reply === "string" ? usual : (reply.finish_reason ?? usual);
}

function usageOf(reply: Reply): Usage | null {
  if (typeof reply === "string" || reply.usage === undefined) return null;
  const { prompt_tokens, completion_tokens } = reply.usage;
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

function messageOf(reply: Reply, turn: number): Message {
  if (typeof reply === "string") return { role: "assistant", content: reply };
  const content = reply.content ?? null;
  if (reply.tool_calls === undefined) return { role: "assistant", content };
  const tool_calls = reply.tool_calls.map((call, index) => ({
    id: call.id ?? `call_${turn}_${index}`,
    type: "function" as const,
    function: {
      name: call.name,
      arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments),
    },
  }));
  return { role: "assistant", content, tool_calls };
}

// Scores what was played in this process. Its judges are functions, too.

/** One function for the judge `default`, or one per name. */
export type TestJudges = TestModel | Readonly<Record<string, TestModel>>;

/** Answers a question to a judge. */
export type JudgeAnswers = (ask: JudgeAsk) => JudgeResult | Promise<JudgeResult>;

interface AnsweringJudges {
  readonly named: readonly string[];
  readonly answer: JudgeAnswers;
}

/**
 * Scores rollouts that were played in this process: one, or a group. `judges`: null if they are not called. The result
 * is undefined if a judgement is missing. Throws what `answer` throws.
 */
export async function scorePlayed(
  code: EnvironmentCode,
  members: readonly Trajectory[],
  judges: AnsweringJudges | null,
  options: Pick<PlayOptions, "now" | "timer">,
): Promise<readonly ScoreRecord[] | undefined> {
  const host = { ...scoringHost(options), hash: (text: string) => text, timer: timerOf(options) };
  const group = { members, secrets: {} };
  if (judges === null) return (await code.score({ ...group, judges: null }, host)).records;
  const { named, answer } = judges;
  const ask = async (pending: readonly JudgeAsk[]) => {
    const given = new Map<string, JudgeResult>();
    for (const one of pending) given.set(one.key, await answer(one));
    return given;
  };
  const scored = await scoreJudged({ known: {}, ask }, (known) =>
    code.score({ ...group, judges: { named, known } }, host),
  );
  return scored.kind === "scored" ? scored.records : undefined;
}

/** Throws what a judge throws, unless it is an error of the library: then there is no judgement. */
function scripted(judges: TestJudges | undefined): AnsweringJudges | null {
  if (judges === undefined) return null;
  const models = typeof judges === "function" ? { default: judges } : judges;
  return { named: Object.keys(models), answer: (ask) => verdictOf(models[ask.judge], ask) };
}

async function verdictOf(model: TestModel | undefined, ask: JudgeAsk): Promise<JudgeResult> {
  if (model === undefined) throw new Error(`no judge ${ask.judge} is scripted`);
  try {
    const reply = await model({ messages: ask.messages, tools: [], turn: 0 });
    const read = readJudgement(ask.menu, textOfReply(reply));
    return read.ok ? read : { value: null, error: read.error, retryable: true };
  } catch (thrown) {
    if (!(thrown instanceof RolloutError)) throw thrown;
    return { value: null, error: thrown.message, retryable: thrown.retryable };
  }
}

function textOfReply(reply: Reply): string {
  return typeof reply === "string" ? reply : textOf({ content: reply.content ?? null });
}

/** The request to a model that is a function. */
export interface ModelRequest {
  readonly messages: Messages;
  readonly tools: readonly ToolDefinition[];
  /** 0 for the first call. */
  readonly turn: number;
}

/** A model's reply: a text, or a text and tool calls. If arguments are an object, they are sent as its JSON. */
export type Reply =
  | string
  | {
      readonly content?: string | null;
      readonly tool_calls?: readonly {
        readonly name: string;
        readonly arguments: string | object;
        readonly id?: string;
      }[];
      /** The default follows from the reply: "tool_calls" or "stop". "length" marks the turn as truncated. */
      readonly finish_reason?: FinishReason;
      /** Absent by default, as from an endpoint that does not count tokens. */
      readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
    };
/**
 * A model. An error of the library that it throws stands for an error of the endpoint; any other is a bug of the test.
 */
export type TestModel = (request: ModelRequest) => Reply | Promise<Reply>;
