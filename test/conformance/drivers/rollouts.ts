/** Rollouts of three small environments against a scripted model, run directly and without scoring. */
import * as z from "zod";
import { ValueError } from "../../../src/contract/errors.ts";
import { FinishReason, type Messages, normalizeMessages } from "../../../src/contract/messages.ts";
import type { AnyEnvironment } from "../../../src/core/environments/any-environment.ts";
import { dataset } from "../../../src/core/environments/dataset.ts";
import { MultiTurnEnv } from "../../../src/core/environments/environment.ts";
import { tool } from "../../../src/core/environments/tool.ts";
import { StatefulToolEnv, ToolEnv } from "../../../src/core/environments/tool-env.ts";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import { playTask, type Reply, type RolloutReport } from "../../../src/core/rollout/play.ts";
import { type Drivers, driver } from "../driver.ts";
import { errorClass, recordedName } from "../error-classes.ts";

const ScriptedReply = z.union([
  z.string(),
  z.strictObject({ raise: z.string() }),
  z.strictObject({ hang: z.literal(true) }),
  z.strictObject({
    content: z.string().nullable().default(null),
    finish_reason: FinishReason.catch(null).default("stop"),
    usage: z.tuple([z.int(), z.int()]).nullish(),
    tool_calls: z.array(z.tuple([z.string(), z.string(), z.string()])).optional(),
  }),
]);
type ScriptedReply = z.infer<typeof ScriptedReply>;
const Model = z.array(ScriptedReply);

const RawMessages = z.union([z.string(), z.array(z.looseObject({ role: z.string() }))]);
const MultiTurn = z.object({
  model: Model,
  max_turns: z.int().default(-1),
  max_total_completion_tokens: z.int().optional(),
  timeout_seconds: z.number().optional(),
  stops: z.array(z.object({ name: z.string(), priority: z.int().default(0), when: z.string() })).default([]),
  final_env_response: RawMessages.optional(),
});
const Tools = z.object({
  model: Model,
  max_turns: z.int().default(10),
  stop_errors: z.array(z.string()).default([]),
});

const Row = z.object({ question: z.string() });
const base = { dataset: dataset(Row, "uploaded"), rubric: {} };
const TASK = {
  example_id: 0,
  task: { question: "q" },
  prompt: [{ role: "user", content: "q" }] satisfies Messages,
  answer: "a",
  info: {},
};

export const ROLLOUTS: Drivers = {
  multiturn: driver(MultiTurn, playMultiTurn),
  tool_env: driver(Tools, async (input) => {
    const { model_calls, report } = await play(toolEnvironment(input), input.model);
    return { ...outcome(report), model_calls };
  }),
  tool_metrics: driver(z.object({ model: Model }), async ({ model }) => {
    const environment = toolEnvironment({ max_turns: 10, stop_errors: [] });
    return (await play(environment, model)).report.metrics;
  }),
  stateful_tool_env: driver(z.object({ model: Model }), async ({ model }) => {
    const log: unknown[] = [];
    const environment = new StatefulToolEnv({
      ...base,
      tools: [sq],
      setupState: () => ({}),
      updateToolArgs: (name, args) => {
        log.push([name, { ...args }]);
        return name === "sq" ? { ...args, x: 9 } : args;
      },
    });
    const { model_calls, report } = await play(environment, model);
    return { ...outcome(report), model_calls, update_tool_args_calls: log };
  }),
};

const sq = tool({
  name: "sq",
  description: "The square of x.",
  parameters: z.object({ x: z.number() }),
  run: ({ x }) => x * x,
});
const boom = tool({
  name: "boom",
  description: "Fails.",
  parameters: z.object({}),
  run: () => {
    throw new ValueError("bad thing");
  },
});

function toolEnvironment(options: { max_turns: number; stop_errors: readonly string[] }) {
  const stopErrors = options.stop_errors.map(errorClass);
  return new ToolEnv({ ...base, tools: [sq, boom], maxTurns: options.max_turns, stopErrors });
}

async function playMultiTurn(input: z.infer<typeof MultiTurn>): Promise<object> {
  let env_calls = 0;
  const { final_env_response: final, timeout_seconds: seconds } = input;
  const environment = new MultiTurnEnv({
    ...base,
    maxTurns: input.max_turns,
    ...(input.max_total_completion_tokens !== undefined && {
      maxTotalCompletionTokens: input.max_total_completion_tokens,
    }),
    ...(seconds !== undefined && { timeoutMs: seconds * 1000 }),
    stops: Object.fromEntries(
      input.stops.map(({ name, priority, when }) => [name, { priority, when: condition(when) }]),
    ),
    envResponse: (_messages, state) => {
      env_calls += 1;
      if (final === undefined) return [{ role: "user", content: `e${env_calls}` }];
      const reply = typeof final === "string" ? final : normalizeMessages(final);
      state.final_env_response = reply;
      return reply.length > 0 ? reply : [{ role: "user", content: "x" }];
    },
  });
  const { model_calls, report } = await play(environment, input.model);
  return { ...outcome(report), model_calls, env_calls };
}

function condition(when: string): (state: { readonly trajectory: readonly unknown[] }) => boolean {
  if (when === "true") return () => true;
  const steps = /^steps>=(\d+)$/.exec(when)?.[1];
  if (steps === undefined) throw new Error(`no condition is written ${when}`);
  return ({ trajectory }) => trajectory.length >= Number(steps);
}

/** The clock stands still, except for a call that hangs: that takes longer than any limit of a vector. */
async function play(
  environment: AnyEnvironment,
  replies: readonly ScriptedReply[],
): Promise<{ model_calls: number; report: RolloutReport }> {
  let model_calls = 0;
  const hung = Promise.withResolvers<void>();
  let now = 0;
  const report = await playTask(
    codeOf(environment),
    { task: TASK, member: null },
    {
      now: () => now,
      until: () => hung.promise,
      model: () => {
        const reply = replies[model_calls] ?? "ok";
        model_calls += 1;
        if (typeof reply !== "object" || !("hang" in reply)) return given(reply);
        now += 1e9;
        hung.resolve();
        return new Promise<Reply>(() => undefined);
      },
    },
  );
  return { model_calls, report };
}

function given(reply: Exclude<ScriptedReply, { hang: true }>): Reply {
  if (typeof reply === "string") return reply;
  if ("raise" in reply) throw new (errorClass(reply.raise))(`the client threw ${reply.raise}`);
  const { content, finish_reason, usage, tool_calls } = reply;
  return {
    content,
    finish_reason,
    ...(usage && { usage: { prompt_tokens: usage[0], completion_tokens: usage[1] } }),
    ...(tool_calls && {
      tool_calls: tool_calls.map(([id, name, args]) => ({ id, name, arguments: args })),
    }),
  };
}

function outcome({ trajectory }: RolloutReport): object {
  const { stop_condition, is_truncated, error, turns, completion, usage } = trajectory;
  const reported = turns.some((turn) => turn.usage !== null);
  const [, cause] = error?.error_chain_str.split(" -> ") ?? [];
  return {
    stop_condition,
    is_truncated,
    is_completed: stop_condition !== null,
    timed_out: stop_condition === "timeout_reached",
    error: error === null ? null : recordedName(error.error),
    error_cause: cause === undefined ? null : recordedName(cause),
    steps: turns.length,
    step_truncated: turns.map((turn) => turn.is_truncated),
    completion: completion.map(({ role, content }) => [role, content]),
    usage: reported ? { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens } : null,
    tool_messages: completion
      .filter(({ role }) => role === "tool")
      .map((message) => [message.tool_call_id, message.content]),
  };
}
