/**
 * The model of a plan: its reply is a function of (seed, tools, whole message history), so that a run with faults must
 * end like a run without. A fickle model replies differently each time, and the run is compared with its log of
 * replies. It runs outside the processes that a plan kills, and its log is the true record of all calls. A call with
 * faults meets them on its first attempts. It is also the judge: it works the same way, and recognises these calls by
 * their keys.
 */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Message, ToolDefinition, Usage } from "../../src/contract/messages.ts";
import { seededRandom } from "../../src/contract/random.ts";
import type { ReplyParts } from "../fakes/completion-body.ts";
import { type Answer, type Fault, type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";
import type { FaultPlan } from "./plan.ts";

/** How one request ended, as far as the model can observe: `open` if the caller had gone before the answer. */
type Ending = "answered" | "refused" | "fault" | "open";

export interface Asked {
  /** Epoch milliseconds. */
  readonly at: number;
  ended: Ending;
  /** The answer; null if there was none. */
  said: Said | null;
  /** Whether that was half a reply. */
  aborted?: true;
}

/** One answer, as it is in the log and as it must be stored. */
export interface Said {
  readonly digest: string;
  readonly usage: Usage | null;
}

/** One call of one turn of one rollout, or one call of a judge, with all its requests. */
export interface AskedCall {
  /** For a judge: the call, identified as its judgement is. */
  readonly rollout: string;
  /** For a judge: the number of earlier replies that were not judgements. */
  readonly turn: number;
  readonly requests: Asked[];
  /** Sent again with another prompt than the first time. */
  changed: boolean;
}

export interface FaultModel {
  /** Including /v1. */
  readonly url: string;
  /** Its calls, by idempotency key. */
  readonly calls: ReadonlyMap<string, AskedCall>;
  /** Epoch milliseconds of each request. */
  readonly times: readonly number[];
  /** The number of calls answered at least once. */
  answered(): number;
  /** The number of calls that wait for their answer now, no two of one rollout. */
  open(): number;
  /** The largest number of calls that waited at once. */
  mostOpen(): number;
  /** Delays answers until the release. */
  hold(): () => void;
  stop(): Promise<void>;
}

/** The most turns of one rollout. */
export const MOST_TURNS = 6;
/** Status 400 with vLLM's message: the rollout is truncated, not failed. */
const OVERFLOW: Fault = {
  kind: "status",
  status: 400,
  body: {
    error: {
      message: "This model's maximum context length is 4096 tokens. Please shorten the messages.",
      type: "BadRequestError",
      code: 400,
    },
  },
};
const REFUSAL: Fault = { kind: "status", status: 400 };
const SILENCE: Answer = { fault: { kind: "hang" } };
/** Half a reply: the call is made again, and the tokens of this one count. */
const ABORTED: Answer & object = {
  content: "Half of a",
  finish_reason: "abort",
  usage: { prompt_tokens: 500, completion_tokens: 3, total_tokens: 503 },
};
export const ABORTED_TOKENS = 503;
/** All of these faults may be retried. */
const PASSING: readonly Answer[] = [
  ...[429, 500, 502, 503].map((status) => ({ fault: { kind: "status", status } as const })),
  { fault: { kind: "status", status: 429, headers: { "retry-after": "0.8" } } },
  { fault: { kind: "reset" } },
  { fault: { kind: "cut" } },
  { fault: { kind: "garbage" } },
  { fault: { kind: "empty_choices" } },
  SILENCE,
  ABORTED,
];

type Settings = Pick<FaultPlan, "seed" | "turns" | "latency_ms" | "answer_characters" | "model_faults" | "fickle">;

export async function startFaultModel(plan: Settings): Promise<FaultModel> {
  const calls = new Map<string, AskedCall & { readonly prompt: string }>();
  const times: number[] = [];
  let gate = Promise.resolve();
  let [answered, mostOpen] = [0, 0];
  const model = await startScriptedModel({
    reply: async (request) => {
      const key = String(request.headers["idempotency-key"]);
      // The platform probes the model's health: not a turn of any rollout.
      if (key.startsWith("probe:")) return "Well.";
      const prompt = JSON.stringify(request.messages);
      const call = calls.get(key) ?? { ...newCall(key), prompt };
      calls.set(key, call);
      if (call.prompt !== prompt) call.changed = true;
      const asked: Asked = { at: Date.now(), ended: "open", said: null };
      times.push(asked.at);
      mostOpen = Math.max(mostOpen, model.inFlight());
      call.requests.push(asked);
      const answer = answerTo(plan, request, call.requests.length - 1);
      if (endingOf(answer) === "answered") request.begin();
      await pause(plan.latency_ms * (0.5 + seededRandom("latency", plan.seed, placeOf(key))()));
      await gate;
      const before = call.requests.some(({ ended }) => ended === "answered");
      noteEnd(asked, answer, request.gone());
      if (asked.ended === "answered" && !before) answered += 1;
      return answer;
    },
  });
  return {
    url: model.url,
    calls,
    times,
    answered: () => answered,
    open: () => model.inFlight(),
    mostOpen: () => mostOpen,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return resolve;
    },
    stop: () => model.stop(),
  };
}

function newCall(key: string): AskedCall {
  const [turn, rollout = ""] = key.split(":").reverse();
  return { rollout, turn: Number(turn), requests: [], changed: false };
}

function saidOf(answer: Answer): Said | null {
  if (typeof answer === "string" || "fault" in answer) return null;
  const calls = (answer.tool_calls ?? []).map(({ id, name, arguments: given }) => {
    return { id, name, given: typeof given === "string" ? given : JSON.stringify(given) };
  });
  return { digest: digestOf(answer.content, calls), usage: answer.usage ?? null };
}

/** A digest of a model's reply. `given`: the arguments of a tool, as sent. */
export function digestOf(
  content: unknown,
  calls: readonly { readonly id: unknown; readonly name: string; readonly given: string }[],
): string {
  const all = [content ?? null, calls.map(({ id, name, given }) => [id, name, given])];
  return createHash("sha256").update(JSON.stringify(all)).digest("hex");
}

const JUDGES = ":judge:";

/**
 * The part of a key that is the same in every run: group, slot, attempt and turn of
 * `ro_<run>_<group>_<slot>_<attempt>_<code>:<turn>`, the part after the run of `<run>:judge:<unit>:<ask>:<replies>`.
 */
function placeOf(key: string): string {
  const [, asked] = key.split(JUDGES);
  if (asked !== undefined) return asked;
  const [, , group, slot, attempt] = key.split("_");
  return [group, slot, attempt, key.split(":")[1]].join("/");
}

function noteEnd(asked: Asked, answer: Answer, gone: boolean): void {
  asked.ended = gone ? "open" : endingOf(answer);
  if (asked.ended === "answered") asked.said = saidOf(answer);
  if (answer === ABORTED && asked.ended === "fault") asked.aborted = true;
}

function endingOf(answer: Answer): Ending {
  if (PASSING.includes(answer)) return "fault";
  return typeof answer === "object" && "fault" in answer ? "refused" : "answered";
}

/** `tries`: how often this call was sent before. */
function answerTo(plan: Settings, request: ModelRequest, tries: number): Answer {
  return faultsOf(plan, request)[tries] ?? sayingOf(plan, request, plan.fickle ? tries : 0);
}

/**
 * The faults of this call's first attempts: none, one or two. They depend on its place in the run, because the ids of a
 * new run differ.
 */
function faultsOf(plan: Settings, { headers }: ModelRequest): Answer[] {
  const place = placeOf(String(headers["idempotency-key"]));
  const random = seededRandom("model faults", plan.seed, place);
  if (random() >= plan.model_faults) return [];
  // For a judge, half a reply is still a reply: it has no judgement, but it costs tokens.
  const odd = place.includes(":") ? ABORTED : null;
  const faults = PASSING.filter((fault) => fault !== odd);
  // Silence after another fault would end the rollout: a call that timed out is made once more if nothing failed before.
  const later = faults.filter((fault) => fault !== SILENCE);
  return Array.from({ length: random() < 0.7 ? 1 : 2 }, (_, tries) => {
    const possible = tries === 0 ? faults : later;
    return possible[Math.floor(random() * possible.length)] ?? { fault: REFUSAL };
  });
}

/** The answer to this history; a fickle model's answers differ from rollout to rollout and from attempt to attempt. */
function sayingOf(plan: Settings, request: ModelRequest, tries: number): ReplyParts | { readonly fault: Fault } {
  const { messages, tools, headers } = request;
  const key = String(headers["idempotency-key"]);
  if (key.includes(JUDGES)) return verdictOf(plan, key, messages);
  const history = JSON.stringify(messages);
  const own = plan.fickle ? [placeOf(key), tries] : [];
  const random = seededRandom("model", plan.seed, history, ...own);
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const odd = random();
  const cut = plan.turns === null && turn > 0;
  if (cut && odd < 0.015) return { fault: OVERFLOW };
  if (cut && odd < 0.025) return { fault: REFUSAL };
  const usage = usageOf(messages, Math.floor(random() * 1000));
  const chance = plan.turns === null ? 1 / (MOST_TURNS - turn) : Number(turn + 1 >= plan.turns);
  const last = tools.length === 0 || random() < chance;
  const content = `${Math.floor(random() * 100)}${" ".repeat(plan.answer_characters)}.`;
  if (last) return { content, usage };
  const calls = Array.from({ length: random() < 0.2 ? 2 : 1 }, (_, index) =>
    toolCall(tools, random, `call_${turn}_${index}`),
  );
  return { content, tool_calls: calls, usage };
}

/** Its first reply is sometimes not a judgement; the platform then asks for another reply. */
function verdictOf({ seed }: Settings, key: string, messages: readonly Message[]): ReplyParts {
  const first = key.endsWith(":0");
  const random = seededRandom("judge", seed, first ? 0 : 1, JSON.stringify(messages));
  const usage = usageOf(messages, Math.floor(random() * 1000));
  if (first && random() < 0.1) return { content: "It is reported splendidly.", usage };
  const verdict = ["poorly", "fairly", "well"][Math.floor(random() * 3)];
  return { content: JSON.stringify({ reason: "It reads so.", verdict }), usage };
}

function toolCall(tools: readonly ToolDefinition[], random: () => number, id: string) {
  const tool = tools[Math.floor(random() * tools.length)];
  const name = tool?.function.name ?? "none";
  // A mistake of the model: the environment answers with what is wrong.
  if (random() < 0.05) return { id, name, arguments: '{"a": 1,' };
  const properties = Object.entries(Object(tool?.function.parameters["properties"]));
  return {
    id,
    name,
    arguments: Object.fromEntries(properties.map(([key, schema]) => [key, value(schema, random)])),
  };
}

function value(schema: unknown, random: () => number): string | number {
  const choices: unknown = Object(schema).enum;
  const number = Math.floor(random() * 100);
  return Array.isArray(choices) ? String(choices[number % choices.length]) : number;
}

/** Differs from call to call, so that one turn counted in place of another would show in the sum. */
function usageOf(messages: readonly Message[], salt: number): Usage {
  const [prompt_tokens, completion_tokens] = [messages.length * 1000 + salt, messages.length + 7];
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
