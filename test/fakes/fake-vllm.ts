/**
 * vLLM of several versions, and prime-rl's own server, on loopback: the routes of each version with their formats and
 * messages, and the ways in which engines fail during a change of weights. There is no model: the weights are a name.
 * The fake records which weights sampled each token, in its log and in the logprobs.
 *
 * Versions: `a` pauses without modes; `b` with modes; `c` also has versions of weights.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { isRecord } from "../../src/contract/json.ts";
import type { Message } from "../../src/contract/messages.ts";
import { completionBody } from "./completion-body.ts";
import { probeReply } from "./probe-reply.ts";
import { promptLogprobsBody } from "./prompt-logprobs.ts";
import { textCompletionBody } from "./text-completion.ts";
import { messagesOfIds, tokenizeReply, withTokens } from "./token-model.ts";
import { type Answer, type Body, controlRoutes, EngineState, type Era, type Routes } from "./vllm-routes.ts";

/**
 * How a call of a route fails. `hang`: no answer. `lost`: it is done, but the answer is lost. `fail`: 500 after half of
 * the work. `die`: half of the work, then the process has ended until `restart`. `lie`: 200, but nothing is done.
 */
export type Break = "hang" | "lost" | "fail" | "die" | "lie" | { readonly status: number; readonly body?: unknown };

/** One completion that was requested. */
export interface SampledCall {
  readonly model: string;
  readonly idempotency_key: string | null;
  readonly salt: string | null;
  /** The weights that sampled its tokens, in order: more than one if it continued after a change. */
  readonly weights: string[];
  /** Its prefix was cached with other weights than those that sampled it. */
  readonly stale_prefix: boolean;
  /** Null until it is answered. */
  finish: string | null;
}

export interface FakeVllmOptions {
  readonly era?: Era;
  /** The weights of the checkpoint it starts with. */
  readonly weights?: string;
  readonly model?: string;
  /** Required under /v1, and nowhere else. */
  readonly api_key?: string;
  /** The answer of GET /version, whatever the truth. */
  readonly version?: string;
  /** False: started without --enable-lora. */
  readonly lora?: boolean;
  /** False: started without VLLM_SERVER_DEV_MODE. */
  readonly dev?: boolean;
  /** The model's reply. */
  readonly reply?: (body: Body) => string;
}

const VERSIONS: Record<Era, string> = {
  ...{ a: "0.14.1", b: "0.28.1", c: "0.32.0" },
  prime_rl: "0.26.0",
};

/** All weights that any fake has had, so that one number means the same in each of them. */
const known: string[] = [];

/** The weights that sampled a token, found by its logprob. */
export function weightsOf(logprob: number): string | undefined {
  return known[Math.round(-logprob * 64) - 1];
}

function logprobOf(weights: string): number {
  if (!known.includes(weights)) known.push(weights);
  return -(known.indexOf(weights) + 1) / 64;
}

export async function startFakeVllm(options: FakeVllmOptions = {}): Promise<FakeVllm> {
  const fake = new FakeVllm(options);
  await fake.listen();
  return fake;
}

export class FakeVllm extends EngineState {
  /** Its completions. */
  readonly calls: SampledCall[] = [];
  /** Every request, as "POST /pause?mode=wait". */
  readonly requests: string[] = [];
  #startedAt = 1_790_000_000.25;
  #dead = false;
  /** Counts the lives of the process: work that began in one life does not end in another. */
  #life = 0;
  readonly #open = new Set<ServerResponse>();
  #held: { open: boolean } | null = null;
  readonly #breaks = new Map<string, { how: Break; times: number }>();
  readonly #options: FakeVllmOptions;
  readonly #routes: Routes;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #port = 0;

  constructor(options: FakeVllmOptions) {
    super(options.era ?? "c", options.weights ?? "v0");
    this.#options = options;
    this.#routes = this.#mounted();
  }

  async listen(): Promise<void> {
    this.#server.keepAliveTimeout = 600_000;
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Without /v1. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get base_url(): string {
    return `${this.url}/v1`;
  }

  /** The next `times` calls of a route fail this way. */
  breakRoute(route: string, how: Break, times = 1): void {
    this.#breaks.set(route, { how, times });
  }

  mend(route: string): void {
    this.#breaks.delete(route);
  }

  /** Completions from now on do not end before the returned function is called. */
  hold(): () => void {
    const held = { open: false };
    this.#held = held;
    return () => {
      [this.#held, held.open] = [null, true];
      this.changed();
    };
  }

  /** A new process, with the settings of its start: its adapters and loaded weights are gone. */
  restart(weights = this.#options.weights ?? "v0"): void {
    this.#cutOff();
    this.adapters.clear();
    this.cache.clear();
    [this.weights, this.paused, this.#dead] = [weights, null, false];
    this.label = "default";
    this.#startedAt += 100;
  }

  /** The process has ended: no call gets an answer until `restart`. */
  die(): void {
    this.#dead = true;
    this.#cutOff();
  }

  /**
   * Closes the connections of pending calls without an answer. Idle connections stay, so that the next call on one is
   * new.
   */
  #cutOff(): void {
    for (const response of this.#open) response.destroy();
    this.inFlight = 0;
    this.#life += 1;
    this.changed();
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://fake");
    const { method = "GET" } = request;
    this.requests.push(`${method} ${request.url}`);
    if (this.#dead) return void request.socket.destroy();
    this.#open.add(response);
    response.once("close", () => this.#open.delete(response));
    const sent = await text(request);
    const guarded = url.pathname.startsWith("/v1") && this.#options.api_key !== undefined;
    if (guarded && request.headers.authorization !== `Bearer ${this.#options.api_key}`) {
      return send(response, [401, { error: "Unauthorized" }]);
    }
    const broken = this.#takeBreak(url.pathname);
    if (broken === "hang") return;
    if (typeof broken === "object" && broken !== null) return send(response, [broken.status, broken.body]);
    if (broken === "lie") return send(response, [200, { status: "ok" }]);
    if (broken === "die" || broken === "fail") {
      this.#spoil(url.pathname);
      if (broken === "fail") return send(response, this.error(500, "EngineCore encountered an issue."));
      this.die();
      return;
    }
    const answer = await this.#answer(request, url, sent);
    if (broken === "lost") request.socket.destroy();
    else send(response, answer);
  }

  #takeBreak(route: string): Break | null {
    const found = this.#breaks.get(route);
    if (found === undefined || found.times === 0) return null;
    found.times -= 1;
    return found.how;
  }

  /** Half of a load: neither the previous weights nor the new ones. */
  #spoil(route: string): void {
    if (LOADS.includes(route)) this.weights = `parts of ${this.weights}`;
  }

  async #answer(request: IncomingMessage, { pathname, searchParams }: URL, sent: string): Promise<Answer> {
    const handler = this.#routes[`${request.method} ${pathname}`];
    if (handler === undefined) {
      const other = request.method === "GET" ? "POST" : "GET";
      const known = this.#routes[`${other} ${pathname}`] !== undefined;
      return known ? [405, { detail: "Method Not Allowed" }] : [404, { detail: "Not Found" }];
    }
    const body = bodyOf(sent);
    if (body === null) return this.error(400, "Invalid JSON format");
    const key = request.headers["idempotency-key"];
    const idempotency_key = typeof key === "string" ? key : null;
    return await handler({ ...body, ...([CHAT, COMPLETIONS].includes(pathname) && { idempotency_key }) }, searchParams);
  }

  #mounted(): Routes {
    const { version = VERSIONS[this.era], dev = true, lora = true } = this.#options;
    const started = () => `# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds ${this.#startedAt}\n`;
    return {
      "GET /health": () => [200],
      "GET /version": () => [200, { version }],
      "GET /metrics": () => [200, started()],
      "GET /openapi.json": () => [200, { openapi: "3.1.0", paths: this.#paths() }],
      "GET /v1/models": () => [200, this.#models()],
      [`POST ${CHAT}`]: async (body) => await this.#chat(body),
      [`POST ${COMPLETIONS}`]: async (body) =>
        body["prompt_logprobs"] === undefined ? await this.#complete(body) : this.#completePrompt(body),
      "POST /tokenize": (body) => this.#tokenize(body),
      ...controlRoutes(this, { dev, lora }),
    };
  }

  /** In FastAPI's format; /metrics is mounted separately. */
  #paths(): Record<string, object> {
    const names = Object.keys(this.#routes).map((route) => route.split(" ")[1] ?? "");
    return Object.fromEntries(names.filter((name) => name !== "/metrics").map((name) => [name, {}]));
  }

  #models() {
    const { model = "policy" } = this.#options;
    const base = {
      id: model,
      object: "model",
      created: 0,
      owned_by: "vllm",
      root: model,
      parent: null,
      max_model_len: 8192,
    };
    const adapters = [...this.adapters].map(([id, root]) => ({
      ...base,
      id,
      root,
      parent: model,
      max_model_len: null,
    }));
    return { object: "list", data: [base, ...adapters] };
  }

  /** Of a prompt of token ids. */
  async #complete(body: Body): Promise<Answer> {
    const prompt = Array.isArray(body["prompt"]) ? body["prompt"].map(Number) : [];
    const logprobs = body["logprobs"] != null;
    const [status, reply] = await this.#chat({ ...body, messages: messagesOfIds(prompt), logprobs });
    return status === 200 && isRecord(reply) ? [200, textCompletionBody(reply)] : [status, reply];
  }

  #tokenize(body: Body): Answer {
    const model = String(body["model"]);
    if (this.#weightsOf(model) !== undefined) return [200, tokenizeReply(body)];
    return this.error(404, `The model \`${model}\` does not exist.`, "NotFoundError");
  }

  #weightsOf(model: string): string | undefined {
    return model === (this.#options.model ?? "policy") ? this.weights : this.adapters.get(model);
  }

  async #chat(body: Body): Promise<Answer> {
    const model = String(body["model"]);
    const serves = () => this.#weightsOf(model);
    const life = this.#life;
    while (this.paused !== null && serves() !== undefined && life === this.#life) await this.change();
    if (life !== this.#life) return [503];
    const weights = serves();
    if (weights === undefined) return this.error(404, `The model \`${model}\` does not exist.`, "NotFoundError");
    if (isProbe(body)) return [200, completionBody(probeReply(body), model, this.calls.length, 3)];
    this.inFlight += 1;
    const call = this.#begin(body, model, weights);
    const end = await this.#sample(call, serves);
    if (life !== this.#life) return [503];
    this.inFlight -= 1;
    this.changed();
    call.finish = end;
    return [200, this.#completion(body, call)];
  }

  /** Only what is asked about a prompt: its logprobs. */
  #completePrompt(body: Body): Answer {
    const reply = promptLogprobsBody(body, this.calls.length);
    return reply === null ? this.error(400, "prompt_logprobs: only these are supported here") : [200, reply];
  }

  #begin(body: Body, model: string, weights: string): SampledCall {
    const { cache_salt, idempotency_key, messages } = body;
    const prefix = JSON.stringify([model, cache_salt ?? null, messages]).slice(0, 160);
    const cached = this.cache.get(prefix) ?? weights;
    this.cache.set(prefix, cached);
    const call = {
      model,
      idempotency_key: typeof idempotency_key === "string" ? idempotency_key : null,
      salt: typeof cache_salt === "string" ? cache_salt : null,
      weights: [weights],
      stale_prefix: cached !== weights,
      finish: null,
    };
    this.calls.push(call);
    return call;
  }

  /** Samples to the last token, whatever happens to the engine meanwhile; returns why it ended. */
  async #sample(call: SampledCall, serves: () => string | undefined): Promise<"stop" | "abort"> {
    const held = this.#held ?? { open: true };
    while (!held.open || this.paused === "keep") {
      if (this.paused === "abort") return "abort";
      await this.change();
      const now = serves() ?? "";
      if (this.paused === null && call.weights.at(-1) !== now) call.weights.push(now);
    }
    return "stop";
  }

  #completion(body: Body, call: SampledCall): object {
    const said = this.#options.reply?.(body) ?? "ok";
    const messages = Array.isArray(body["messages"]) ? (body["messages"] as Message[]) : [];
    const whole = withTokens({ content: said }, messages, body);
    const most = Number(body["max_completion_tokens"] ?? body["max_tokens"] ?? Number.POSITIVE_INFINITY);
    const cut = call.finish === "abort" ? 1 : most;
    const token_ids = (whole.token_ids ?? []).slice(0, cut);
    const share = Math.ceil(token_ids.length / call.weights.length);
    const logprobs = token_ids.map((_, at) => logprobOf(call.weights[Math.floor(at / share)] ?? ""));
    const shorter = token_ids.length < (whole.token_ids?.length ?? 0);
    const finish_reason = call.finish === "abort" ? "abort" : shorter ? "length" : "stop";
    const content = finish_reason === "stop" ? said : said.slice(0, cut);
    const { logprobs: _, prompt_token_ids, ...rest } = { ...whole, content, token_ids, finish_reason };
    const ids = body["return_token_ids"] === true;
    const parts = {
      ...(ids ? { ...rest, ...(prompt_token_ids && { prompt_token_ids }) } : { content, finish_reason }),
      ...(body["logprobs"] === true && { logprobs }),
    };
    return completionBody(parts, call.model, this.calls.indexOf(call), prompt_token_ids?.length ?? 1);
  }
}

const CHAT = "/v1/chat/completions";
const COMPLETIONS = "/v1/completions";
const LOADS = ["/update_weights", "/collective_rpc"];

/** The probes of src/kernel/clients/probe.ts are not calls of a rollout. */
function isProbe(body: Body): boolean {
  return Number(body["top_logprobs"] ?? 0) > 0 || (body["max_tokens"] === 2 && Array.isArray(body["tools"]));
}

function bodyOf(sent: string): Body | null {
  if (sent === "") return {};
  const body: unknown = JSON.parse(sent);
  return typeof body === "object" && body !== null && !Array.isArray(body) ? { ...body } : null;
}

function send(response: ServerResponse, [status, body = ""]: Answer): void {
  const plain = typeof body === "string";
  response.writeHead(status, { "content-type": plain ? "text/plain; charset=utf-8" : "application/json" });
  response.end(plain ? body : JSON.stringify(body));
}
