/**
 * The model of a plan: what it says is a function of (seed, tools, whole message history), so that a run under faults
 * must come to the same end as a run without. One that is fickle says something else each time, and its book of what it
 * gave is what the run is held to. It lives outside the processes a plan kills, and its log is the truth
 * about what was asked. A call that meets faults meets them on its first tries. It judges as well: the same way, and
 * known by its keys.
 */
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Message, ToolDefinition, Usage } from "../../src/contract/messages.ts";
import { seededRandom } from "../../src/contract/random.ts";
import type { ReplyParts } from "../fakes/completion-body.ts";
import { type Answer, type Fault, type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";
import type { FaultPlan } from "./plan.ts";

/** How one request ended, as far as the model can know: `open` when its caller was gone before the answer. */
type Ending = "answered" | "refused" | "fault" | "open";

export interface Asked {
  /** Epoch milliseconds. */
  readonly at: number;
  ended: Ending;
  /** What it was answered with; null where it was not. */
  said: Said | null;
  /** Whether that was half a reply. */
  aborted?: true;
}

/** One answer, as it is written in the book and as it is to be stored. */
export interface Said {
  readonly digest: string;
  readonly usage: Usage | null;
}

/** One call of one turn of one rollout, as often as it was sent; or one asking of a judge. */
export interface AskedCall {
  /** The judge's: what it was asked, as its verdict is known by. */
  readonly rollout: string;
  /** The judge's: its replies before this one, which were no verdicts. */
  readonly turn: number;
  readonly requests: Asked[];
  /** Sent again with another prompt than the first time. */
  changed: boolean;
}

export interface FaultModel {
  /** Up to and including /v1. */
  readonly url: string;
  /** By idempotency key. */
  readonly calls: ReadonlyMap<string, AskedCall>;
  /** Epoch milliseconds of each request. */
  readonly times: readonly number[];
  /** Calls answered at least once. */
  answered(): number;
  /** Calls that wait for their answer at this moment, no two of one rollout. */
  open(): number;
  /** The most that ever waited at once. */
  mostOpen(): number;
  /** Answers wait until the release. */
  hold(): () => void;
  stop(): Promise<void>;
}

/** Of one rollout. */
export const MOST_TURNS = 6;
/** Status 400 with vLLM's words: the rollout is cut short, not failed. */
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
/** Half a reply: the call is made again, and what this one took counts. */
const ABORTED: Answer & object = {
  content: "Half of a",
  finish_reason: "abort",
  usage: { prompt_tokens: 500, completion_tokens: 3, total_tokens: 503 },
};
export const ABORTED_TOKENS = 503;
/** Every one of them may be asked again. */
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
      // The platform asks whether the model is well: no turn of any rollout.
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
      await pause(plan.latency_ms * (0.5 + seededRandom("latency", plan.seed, placeOf(key))()));
      await gate;
      const before = call.requests.some(({ ended }) => ended === "answered");
      asked.ended = request.gone() ? "open" : endingOf(answer);
      if (asked.ended === "answered") asked.said = saidOf(answer);
      if (answer === ABORTED && asked.ended === "fault") asked.aborted = true;
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

/** Of what a model said. `given`: arguments of a tool, as sent. */
export function digestOf(
  content: unknown,
  calls: readonly { readonly id: unknown; readonly name: string; readonly given: string }[],
): string {
  const all = [content ?? null, calls.map(({ id, name, given }) => [id, name, given])];
  return createHash("sha256").update(JSON.stringify(all)).digest("hex");
}

const JUDGES = ":judge:";

/**
 * What is the same of a key in every run: group, slot, attempt and turn of `ro_<run>_<group>_<slot>_<attempt>_<code>:<turn>`,
 * what follows on the run of `<run>:judge:<unit>:<ask>:<replies>`.
 */
function placeOf(key: string): string {
  const [, asked] = key.split(JUDGES);
  if (asked !== undefined) return asked;
  const [, , group, slot, attempt] = key.split("_");
  return [group, slot, attempt, key.split(":")[1]].join("/");
}

function endingOf(answer: Answer): Ending {
  if (PASSING.includes(answer)) return "fault";
  return typeof answer === "object" && "fault" in answer ? "refused" : "answered";
}

/** `tries`: how often this call was sent before. */
function answerTo(plan: Settings, request: ModelRequest, tries: number): Answer {
  return faultsOf(plan, request)[tries] ?? sayingOf(plan, request, plan.fickle ? tries : 0);
}

/** What the first tries of this call meet; none, one or two. Decided by its place in the run, as a new run's ids differ. */
function faultsOf(plan: Settings, { headers }: ModelRequest): Answer[] {
  const place = placeOf(String(headers["idempotency-key"]));
  const random = seededRandom("model faults", plan.seed, place);
  if (random() >= plan.model_faults) return [];
  // Of a judge half a reply is a reply: no verdict, and it has its cost.
  const odd = place.includes(":") ? ABORTED : null;
  const faults = PASSING.filter((fault) => fault !== odd);
  return Array.from({ length: random() < 0.7 ? 1 : 2 }, () => {
    return faults[Math.floor(random() * faults.length)] ?? { fault: REFUSAL };
  });
}

/** What this history is answered with; a fickle model's answers differ from rollout to rollout and from try to try. */
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

/** Its first reply is no verdict now and then: it is asked once more then, as for another reply. */
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
  // A model's slip: the environment answers it with what is wrong.
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

/** Differs from call to call, so that one turn counted for another would show in the sum. */
function usageOf(messages: readonly Message[], salt: number): Usage {
  const [prompt_tokens, completion_tokens] = [messages.length * 1000 + salt, messages.length + 7];
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
