/**
 * Plays one rollout in this process, without platform and network; the model is a function.
 *
 * Invariants. The loop is the platform's: the same state machine, the same harness, the same scoring. This module makes
 * no decision about a rollout. The model is outside of the rollout, so a restart does not affect it.
 */
import { OverlongPromptError, RolloutError, type SerializedError, serializeError } from "../../contract/errors.ts";
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
import type { AnyEnvironment } from "../environments/any-environment.ts";
import type { Capabilities } from "../environments/contract.ts";
import { NO_JOURNAL, RolloutSql } from "../environments/rollout-sql.ts";
import { readJudgement } from "../rubrics/judgement.ts";
import type { JudgeAsk, JudgeResult } from "../rubrics/judges.ts";
import {
  type Scorable,
  type ScoreRecord,
  type ScoringOffer,
  scoreAsking,
  scoreJudged,
  scoreScoringGroup,
} from "../rubrics/score.ts";
import { databaseOf, type SqliteHandle } from "../sql/database.ts";
import { type Harness, offeredTools, openHarness } from "./harness.ts";
import {
  advance,
  type Event,
  newRollout,
  nextEffect,
  outstandingPrompt,
  type Rollout,
  type RolloutTask,
  trajectoryOf,
} from "./rollout.ts";

export interface PlayOptions {
  readonly model: TestModel;
  /** After every step: stores the rollout, drops the harness and its handles, and continues with a new one. */
  readonly restartAfterEachTurn?: boolean;
  /**
   * A second instance of the environment. Restarts alternate between the two, and it scores, so that state kept on one
   * instance instead of the rollout shows up as a difference.
   */
  readonly secondInstance?: AnyEnvironment;
  readonly seed?: number;
  /** The platform's capabilities; the environment gets those it declares. `now` is epoch milliseconds; 0 by default. */
  readonly capabilities?: Partial<Omit<Capabilities, "random" | "sql">>;
  /** Resolves at that time (epoch milliseconds). It ends a call that never answers, if there is a time limit. */
  readonly until?: (at: number) => Promise<void>;
  /** Answers for the rubric's judge; for several judges, one function per name. Without it judges give no judgement. */
  readonly judge?: TestJudges;
  /**
   * Opens an empty database for the rollout if the environment needs sql: `() => new DatabaseSync(":memory:")` of
   * node:sqlite.
   */
  readonly openSqlite?: () => SqliteHandle;
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

/** Throws what the model throws, and if handles cannot be closed at a restart; all other errors are in the report. */
export async function playTask(
  environment: AnyEnvironment,
  task: Omit<RolloutTask, "id" | "task_key">,
  options: PlayOptions,
): Promise<RolloutReport> {
  const named = { ...task, id: "rollout", task_key: "task" };
  const done = await drive(environment, newRollout(named, now(options)), options);
  const trajectory = trajectoryOf(done);
  const scorer = options.restartAfterEachTurn ? (options.secondInstance ?? environment) : environment;
  const capabilities = { now: () => now(options), ...options.capabilities };
  const record = await scorePlayed(scorer, trajectory, options.judge, { capabilities });
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

async function drive(environment: AnyEnvironment, started: Rollout, options: PlayOptions): Promise<Rollout> {
  let rollout = started;
  let [current, other] = [environment, options.secondInstance ?? environment];
  const sql = openSql(environment, options);
  let harness = newHarness(current, rollout, { ...options, sql });
  while (rollout.phase !== "done") {
    const hooked = rollout.phase !== "sample";
    rollout = await step(current, harness, rollout, options);
    if (options.restartAfterEachTurn !== true) continue;
    const fault = await harness.dispose();
    if (fault !== null) throw new Error(`closeLive failed at a restart: ${fault.message}`);
    rollout = JSON.parse(JSON.stringify(rollout)) as Rollout;
    // The instances alternate after every hook and not after every step, since half of the steps are the model's.
    if (hooked) [current, other] = [other, current];
    harness = newHarness(current, rollout, { ...options, sql });
  }
  return rollout;
}

/** The database outlives a restart, as the platform's does. */
function openSql({ needs }: AnyEnvironment, { openSqlite }: PlayOptions): RolloutSql | undefined {
  if (!needs.includes("sql") || openSqlite === undefined) return undefined;
  return new RolloutSql(databaseOf(openSqlite()), NO_JOURNAL);
}

async function step(
  environment: AnyEnvironment,
  harness: Harness,
  rollout: Rollout,
  options: PlayOptions,
): Promise<Rollout> {
  const effect = nextEffect(rollout);
  const { timeoutMs } = environment.route(rollout).environment;
  const late = timeoutMs !== null && now(options) - rollout.started_at >= timeoutMs;
  if (late && effect.kind !== "close") return advance(rollout, { type: "timed_out" });
  switch (effect.kind) {
    case "setup":
    case "reply":
    case "close":
      return advance(rollout, await harness.perform(effect, rollout));
    case "sample": {
      const sent = advance(rollout, { type: "sent" });
      const tools = harness.offered ?? offeredTools(environment, rollout);
      return advance(sent, await askModel(environment, rollout, tools, options));
    }
    case "done":
      return rollout;
  }
}

/** The event of a call, as on the platform: an answer, an error of the endpoint, or the end of the rollout's time. */
async function askModel(
  environment: AnyEnvironment,
  rollout: Rollout,
  tools: ReturnType<typeof offeredTools>,
  options: PlayOptions,
): Promise<Event> {
  const turn = rollout.turns.length;
  if ("error" in tools) return { type: "failed", failure: "environment", error: tools };
  const request = { messages: outstandingPrompt(rollout), tools, turn };
  try {
    const reply = await inTime(options.model(request), environment, rollout, options);
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
  environment: AnyEnvironment,
  rollout: Rollout,
  { until }: PlayOptions,
): Promise<Reply | null> {
  const { timeoutMs } = environment.route(rollout).environment;
  if (timeoutMs === null || until === undefined) return answer;
  const late = until(rollout.started_at + timeoutMs).then(() => null);
  return Promise.race([answer, late]);
}

function newHarness(
  environment: AnyEnvironment,
  rollout: Rollout,
  options: PlayOptions & { readonly sql: RolloutSql | undefined },
): Harness {
  return openHarness(environment, rollout, {
    rolloutId: rollout.id,
    sql: options.sql,
    seed: options.seed ?? 0,
    capabilities: { now: () => 0, ...options.capabilities },
  });
}

function now(options: PlayOptions): number {
  return options.capabilities?.now?.() ?? 0;
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

// Scores a rollout that was played in this process. Its judges are functions, too.

/** One function for the judge `default`, or one per name. */
export type TestJudges = TestModel | Readonly<Record<string, TestModel>>;

/** Throws what a judge throws, unless it is an error of the library: then there is no judgement. */
async function scorePlayed(
  environment: Scorable,
  trajectory: Trajectory,
  judges: TestJudges | undefined,
  offer: Omit<ScoringOffer, "judges">,
): Promise<ScoreRecord | undefined> {
  const members = [trajectory];
  if (judges === undefined) return (await scoreScoringGroup(environment, members, offer))[0];
  const models = typeof judges === "function" ? { default: judges } : judges;
  const ask = async (pending: readonly JudgeAsk[]) => {
    const given = new Map<string, JudgeResult>();
    for (const one of pending) given.set(one.key, await verdictOf(models[one.judge], one));
    return given;
  };
  const asked = { named: Object.keys(models), hash: (text: string) => text };
  const scored = await scoreJudged({ known: {}, ask }, (known) =>
    scoreAsking(environment, members, { ...asked, known }, offer),
  );
  return scored.kind === "scored" ? scored.records[0] : undefined;
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
