/**
 * A model that logs every token it ever computed, whatever happened to the answer: the caller had gone, it was cut off,
 * garbled, or requested again with the same key. Only refused requests are free.
 */
import { setTimeout as pause } from "node:timers/promises";
import { seededRandom } from "../../../src/contract/random.ts";
import { type Answer, type ModelRequest, startScriptedModel } from "../../fakes/scripted-model.ts";
import { MOST_TURNS } from "../fault-model.ts";
import type { CapPlan } from "./plan.ts";

export interface Book {
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  /** Requests that were not the first with their key. */
  again: number;
}

export interface BilledModel {
  readonly url: string;
  readonly book: Readonly<Book>;
  /** Epoch milliseconds of each request. */
  readonly times: readonly number[];
  open(): number;
  mostOpen(): number;
  /** Delays answers until the release. */
  hold(): () => void;
  stop(): Promise<void>;
}

/** Refused: nothing was computed. */
const REFUSED: readonly Answer[] = [429, 500, 503].map((status) => ({ fault: { kind: "status", status } }));
/** Computed, and lost on its way. */
const LOST: readonly Answer[] = [
  { fault: { kind: "status", status: 502 } },
  { fault: { kind: "reset" } },
  { fault: { kind: "cut" } },
  { fault: { kind: "garbage" } },
  { fault: { kind: "hang" } },
];

export async function startBilledModel(plan: CapPlan): Promise<BilledModel> {
  const book: Book = { calls: 0, prompt_tokens: 0, completion_tokens: 0, again: 0 };
  const times: number[] = [];
  const seen = new Map<string, number>();
  let gate = Promise.resolve();
  let most = 0;
  const model = await startScriptedModel({
    reply: async (request) => {
      const key = String(request.headers["idempotency-key"]);
      if (key.startsWith("probe:")) return "Well.";
      const tries = seen.get(key) ?? 0;
      seen.set(key, tries + 1);
      times.push(Date.now());
      most = Math.max(most, model.inFlight());
      const random = seededRandom("billed", plan.seed, key, tries);
      const answer = answerTo(plan, request, tries, random);
      if (!REFUSED.includes(answer)) {
        const usage = usageOf(plan, request, random);
        book.calls += 1;
        book.again += tries > 0 ? 1 : 0;
        book.prompt_tokens += usage.prompt_tokens;
        book.completion_tokens += usage.completion_tokens;
        await pause(plan.latency_ms * (0.5 + random()));
        await gate;
        // Sometimes the usage is missing: then the platform cannot know the cost of that call.
        const told = random() < 0.03 ? null : usage;
        return typeof answer === "string" || "fault" in answer ? answer : { ...answer, usage: told };
      }
      await gate;
      return answer;
    },
  });
  return {
    url: model.url,
    book,
    times,
    open: () => model.inFlight(),
    mostOpen: () => most,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return resolve;
    },
    stop: () => model.stop(),
  };
}

/** The first two attempts may fail. */
function answerTo({ model_faults }: CapPlan, request: ModelRequest, tries: number, random: () => number): Answer {
  const odd = random();
  const faults = random() < 0.5 ? REFUSED : LOST;
  const fault = faults[Math.floor(random() * faults.length)];
  if (tries < 2 && odd < model_faults && fault !== undefined) return fault;
  if (String(request.headers["idempotency-key"]).includes(":judge:")) {
    return { content: JSON.stringify({ reason: "It reads so.", verdict: "well" }) };
  }
  const turn = request.messages.filter(({ role }) => role === "assistant").length;
  const [tool] = request.tools;
  const content = "word ".repeat(Math.floor(random() * 60));
  if (tool === undefined || random() < 1 / (MOST_TURNS - turn)) return { content };
  const properties = Object.keys(Object(tool.function.parameters["properties"]));
  const given = Object.fromEntries(properties.map((name) => [name, Math.floor(random() * 100)]));
  return { content, tool_calls: [{ id: `call_${turn}`, name: tool.function.name, arguments: given }] };
}

/** At most a token for each byte of the request, and up to the maximum of the answer: both happen. */
function usageOf({ max_tokens }: CapPlan, { body }: ModelRequest, random: () => number) {
  const asked = Number(body["max_completion_tokens"] ?? body["max_tokens"]);
  if (asked !== max_tokens) throw new Error(`asked for ${asked} tokens, and not ${max_tokens}`);
  const { length: bytes } = new TextEncoder().encode(JSON.stringify([body["messages"], body["tools"] ?? []]));
  const prompt_tokens = Math.floor(bytes * (random() < 0.1 ? 1 : 0.15 + random() * 0.6));
  const completion_tokens = random() < 0.1 ? max_tokens : 1 + Math.floor(random() * (max_tokens - 1));
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
