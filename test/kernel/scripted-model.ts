/**
 * The model that tests in workerd call: started once, on loopback, before the suite. It answers from the request alone:
 * the model's name is its script (script.ts), the number of assistant messages says which turn is due, and the
 * idempotency key which try it is. It returns the requests that it got to a test that inquires.
 */
import type { TestProject } from "vitest/node";
import { textOf } from "../../src/contract/messages.ts";
import { randomPolicy } from "../../src/core/validation/policies.ts";
import { startAccess } from "../fakes/access-team.ts";
import type { Reply, ReplyParts } from "../fakes/completion-body.ts";
import { startMcpShop } from "../fakes/mcp-loopback.ts";
import { startCollector } from "../fakes/otlp-collector.ts";
import { probeReply } from "../fakes/probe-reply.ts";
import { type Answer, type Fault, type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";
import { withTokens } from "../fakes/token-model.ts";
import {
  type Failing,
  type Inquiry,
  type Kept,
  type Named,
  type Release,
  type Script,
  type Seen,
  scriptOf,
} from "./script.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL up to and including /v1. */
    modelUrl: string;
    /** A shop behind MCP. */
    mcpUrl: string;
    /** A fake Cloudflare Access: a team under each first part of the path. */
    accessUrl: string;
    /** A collector of spans under each first part of the path. */
    collectorUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const log = new RequestLog();
  const gates = new Gates();
  const kept = new Map<string, Script>();
  const model = await startScriptedModel({
    reply: async (request) => withKey(await answer(request, { log, gates, kept }), request),
  });
  project.provide("modelUrl", model.url);
  const shop = await startMcpShop(async () => new (await import("../fakes/mcp-shop.ts")).McpShop());
  project.provide("mcpUrl", shop.url);
  const access = await startAccess();
  project.provide("accessUrl", access.url);
  const collector = await startCollector();
  project.provide("collectorUrl", collector.url);
  return async () => {
    await Promise.all([model.stop(), shop.stop(), access.stop(), collector.stop()]);
  };
}

class RequestLog {
  readonly #seen = new Map<string, Seen[]>();
  #waiting: (() => void)[] = [];

  of(model: string): Seen[] {
    return this.#seen.get(model) ?? [];
  }

  /** The number of earlier requests with its key. */
  add(model: string, seen: Seen): number {
    const before = this.of(model);
    this.#seen.set(model, [...before, seen]);
    for (const wake of this.#waiting.splice(0)) wake();
    return before.filter(({ idempotency_key }) => idempotency_key === seen.idempotency_key).length;
  }

  async atLeast(model: string, count: number): Promise<Seen[]> {
    while (this.of(model).length < count) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.of(model);
  }
}

/** Where the requests of held scripts wait. */
class Gates {
  readonly #gates = new Map<string, PromiseWithResolvers<Fault | null>>();
  readonly #opened = new Map<string, number>();

  /** Resolves with the fault when the request of this key, the `tries`-th from 0, is released. */
  passed(key: string, tries: number): Promise<Fault | null> {
    return this.#gate(key, tries).promise;
  }

  open({ idempotency_key: key, fault }: Release): void {
    const tries = this.#opened.get(key) ?? 0;
    this.#opened.set(key, tries + 1);
    this.#gate(key, tries).resolve(fault ?? null);
  }

  #gate(key: string, tries: number): PromiseWithResolvers<Fault | null> {
    const name = `${key} ${tries}`;
    const gate = this.#gates.get(name) ?? Promise.withResolvers<Fault | null>();
    this.#gates.set(name, gate);
    return gate;
  }
}

interface Memory {
  readonly log: RequestLog;
  readonly gates: Gates;
  readonly kept: Map<string, Script>;
}

async function answer(request: ModelRequest, { log, gates, kept }: Memory): Promise<Answer> {
  const order: Script | Inquiry | Release | Kept | Named = JSON.parse(request.model);
  if ("requests_of" in order) {
    return JSON.stringify(await log.atLeast(order.requests_of, order.at_least));
  }
  if ("idempotency_key" in order) {
    gates.open(order);
    return "released";
  }
  if ("keep" in order) {
    kept.set(order.keep, order.script);
    return "kept";
  }
  const played = "named" in order ? kept.get(order.named) : order;
  if (played === undefined) return "no such script was kept";
  const { headers, messages } = request;
  const tries = log.add(request.model, {
    at: Date.now(),
    path: request.path,
    idempotency_key: String(headers["idempotency-key"]),
    authorization: String(headers.authorization),
    messages: messages.length,
    tools: request.tools,
    sampling: samplingOf(request.body),
  });
  const key = headers["idempotency-key"];
  const isProbe = String(key).startsWith("probe");
  const fault = played.held && key !== undefined && !isProbe ? await gates.passed(String(key), tries) : null;
  if (fault !== null) return { fault };
  if (request.path !== "/tokenize") return sayingOf(played, request, tries);
  return played.tokenize === undefined ? "" : failOr(played.tokenize, tries);
}

/** `tries`: earlier requests with its key. */
function sayingOf(order: Script, request: ModelRequest, tries: number): Answer | Promise<Answer> {
  const { headers, messages } = request;
  // A request without a key is a probe of the engine.
  const probed = headers["idempotency-key"] === undefined && order.tokens === true;
  if (probed) return probeReply(request.body, order.engine);
  if (order.ranks) return rankingOf(request);
  if (order.random && slotOf(request) > 0) return randomReply(request);
  const bySlot = order.slots?.[slotOf(request)];
  if (bySlot !== undefined) return order.tokens ? withTokens(partsOf(bySlot), messages, request.body) : bySlot;
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const item = turnsFor(order, messages)[turn];
  if (item === undefined) return `the script has no reply for turn ${turn}`;
  if (!isFailing(item)) return order.tokens ? withTokens(partsOf(item), messages, request.body) : item;
  const { attempts = Number.POSITIVE_INFINITY, reply } = item;
  const spared = attemptOf(String(headers["idempotency-key"])) >= attempts || !isMeant(item, request);
  if (spared && reply !== undefined) return reply;
  return failOr(item, tries);
}

/** Inserts the key of the request where the script says so. */
function withKey(answer: Answer, { headers }: ModelRequest): Answer {
  const authorization = String(headers.authorization);
  const base64 = Buffer.from(authorization).toString("base64");
  const text = JSON.stringify(answer);
  if (!/\{(authorization|base64)\}/.test(text)) return answer;
  return JSON.parse(text.replaceAll("{authorization}", authorization).replaceAll("{base64}", base64));
}

function partsOf(reply: Reply): ReplyParts {
  return typeof reply === "string" ? { content: reply } : reply;
}

/** Every call is a stream, with its usage. */
function samplingOf({
  model: _,
  messages: _1,
  tools: _2,
  stream: _3,
  stream_options: _4,
  ...rest
}: ModelRequest["body"]) {
  return rest;
}

function slotOf({ headers }: ModelRequest): number {
  return Number.parseInt(String(headers["idempotency-key"]).split("_")[3] ?? "", 36);
}

async function randomReply(request: ModelRequest): Promise<Answer> {
  const { headers, messages, tools } = request;
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const group = Number.parseInt(String(headers["idempotency-key"]).split("_")[2] ?? "", 36);
  const reply = await randomPolicy(100 * group + slotOf(request))()({ messages, tools, turn });
  if (typeof reply === "string") return reply;
  const calls = (reply.tool_calls ?? []).map(({ name, arguments: given }, at) => {
    return { name, id: `call_${turn}_${at}`, arguments: typeof given === "string" ? given : JSON.stringify(given) };
  });
  return { content: reply.content ?? null, tool_calls: calls };
}

/** The input of GroupJudgeRubric, and the reply it expects. */
function rankingOf({ messages }: ModelRequest): string {
  const shown = textOf(messages.at(-1)).matchAll(/Attempt (\w+):\n`+\n\[assistant\]\n(.*)\n/g);
  const attempts = [...shown].map(([, id = "", said = ""]) => ({ id, length: said.length }));
  const longest = Math.max(...attempts.map(({ length }) => length));
  const scores = attempts.map(({ id, length }) => ({ id, reason: "so", score: length / longest }));
  return JSON.stringify({ scores });
}

/** `ro_<run>_<group>_<slot>_<attempt>_<hash>:<turn>`. */
function attemptOf(key: string): number {
  return Number.parseInt(key.split("_")[4] ?? "", 36);
}

function turnsFor({ turns, when = {} }: Script, messages: ModelRequest["messages"]) {
  const question = textOf(messages.find(({ role }) => role === "user"));
  const word = Object.keys(when).find((key) => question.includes(key));
  return scriptOf(question) ?? (word === undefined ? undefined : when[word]) ?? turns;
}

function isMeant({ holds = "", lacks }: Failing, { body }: ModelRequest): boolean {
  const text = JSON.stringify(body);
  return text.includes(holds) && (lacks === undefined || !text.includes(lacks));
}

function failOr({ fault, times, reply }: Failing, tries: number): Answer {
  if (times === undefined || tries < times) return { fault };
  return reply ?? `the script has no reply after ${times} failures`;
}

function isFailing(item: Reply | Failing): item is Failing {
  return typeof item === "object" && "fault" in item;
}
