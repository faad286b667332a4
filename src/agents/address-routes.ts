/**
 * The address of a rollout: the APIs of OpenAI and Anthropic, for the agent that plays it.
 *
 * Invariants. An answer is stored whole before any of it is sent, so a stream repeats what is stored. While a stream
 * waits for its answer, comment lines keep the connection open. A status is sent at once if the answer comes soon; later
 * a refusal is an event of the stream.
 */
import * as z from "zod";
import type { Json } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import { AnyObject } from "../contract/primitives.ts";
import { bearerOf } from "../kernel/http/bearer.ts";
import { headerAs, idempotencyKeyOf, jsonOfText, readText } from "../kernel/http/input.ts";
import { type ApiContext, type Operation, type RefusalForm, serviceOf } from "../kernel/http/operation.ts";
import { logError } from "../kernel/kit/log.ts";
import { pulledStream } from "../kernel/kit/pulled-stream.ts";
import { type RolloutAccess, sha256Hex } from "../kernel/kit/secrets.ts";
import type { AgentAnswer, AgentReply } from "../kernel/messages/agent-wire.ts";
import { type Form, FormError, type FormReply, type FormRequest } from "./forms/form.ts";
import { FORMS } from "./forms/forms.ts";
import { accessOf } from "./routes.ts";

const ADDRESS = "/model/{id}/v1";
/** After this a stream begins without its answer. */
const FIRST_MS = 5000;
/** Between two comment lines. */
const ALIVE_MS = 10_000;
const ALIVE = ": waiting for the model\n\n";
/** An estimate: the tokenizer of the model is not known here. */
const CHARACTERS_PER_TOKEN = 4;

const { chat, responses, messages } = FORMS;

const service = serviceOf<typeof import("./service.ts")>("agents");

const KEY = { permission: "anybody", proof: "rollout_key" } as const;
const TRAIN = "X-Rollcall-Train";
const Train = z.enum(["true", "false"], { error: "must be true or false" });
const HEADERS = {
  "Idempotency-Key": "a repeat with the same key and body gets the stored answer",
  "x-stainless-retry-count": "above 0: the call is a repeat of the last one with the same body",
  [TRAIN]: "false: the turn is excluded from training; default true. A repeated call keeps what the first one said",
};
const REPEATS =
  "The run's model answers, whatever `model` says. With the k-th repeat of a body under one lease comes its k-th stored answer; only then is the model called again.";

const OPENAI_REFUSALS: RefusalForm = {
  schema: AnyObject,
  bodyOf: (error) => chat.refusal({ ...error, status: 400 }),
  unserved: () => null,
};
const ANTHROPIC_REFUSALS: RefusalForm = {
  schema: AnyObject,
  bodyOf: (error) => messages.refusal({ ...error, status: statusOf(error.type) }),
  unserved: () => null,
};

function statusOf(type: string): number {
  const statuses: Readonly<Record<string, number>> = {
    authentication_error: 401,
    rate_limit_error: 429,
    server_error: 500,
  };
  return statuses[type] ?? 400;
}

function call(id: string, path: string, summary: string, form: Form, refusals: RefusalForm): Operation {
  return {
    ...{ id, route: `POST ${ADDRESS}/${path}`, ...KEY, refusals, unlogged: true },
    summary,
    description: REPEATS,
    headers: HEADERS,
    body: { schema: AnyObject, example: {} },
    reply: {
      description: "The answer; with `stream`, its events",
      schema: AnyObject,
      example: {},
      otherwise: { "text/event-stream": { description: "with `stream`", example: "data: …\n\n" } },
    },
    errors: ["unauthorized", "rate_limited", "conflict", "too_large"],
    handle: (context) => answerCall(context, form),
  };
}

export const addressOperations: readonly Operation[] = [
  call(
    "callChatCompletions",
    "chat/completions",
    "For agents: call the model with chat completions",
    chat,
    OPENAI_REFUSALS,
  ),
  call("callResponses", "responses", "For agents: call the model with Responses", responses, OPENAI_REFUSALS),
  call(
    "callMessages",
    "messages",
    "For agents: call the model with Anthropic's messages",
    messages,
    ANTHROPIC_REFUSALS,
  ),
  {
    ...{ id: "listRolloutModels", route: `GET ${ADDRESS}/models`, ...KEY, refusals: OPENAI_REFUSALS },
    summary: "For agents: list the model of the rollout",
    reply: { description: "One model, in OpenAI's format", schema: AnyObject, example: { object: "list" } },
    errors: ["unauthorized", "rate_limited"],
    handle: async (context) => {
      const access = await accessOf(context, keyOf(context));
      const id = await service(context).modelOf(context.env, access);
      const data = id === null ? [] : [{ id, object: "model", created: 0, owned_by: "rollcall" }];
      return context.json({ object: "list", data });
    },
  },
  {
    ...{ id: "countMessageTokens", route: `POST ${ADDRESS}/messages/count_tokens`, ...KEY, unlogged: true },
    refusals: ANTHROPIC_REFUSALS,
    summary: "For agents: estimate the tokens of a call",
    description: "A quarter of the characters of the request: the platform does not have the model's tokenizer.",
    body: { schema: AnyObject, example: {} },
    reply: { description: "The estimate", schema: z.object({ input_tokens: z.int() }), example: { input_tokens: 12 } },
    errors: ["unauthorized", "rate_limited", "too_large"],
    handle: async (context) => {
      const access = await accessOf(context, keyOf(context));
      const text = await bodyOf(context, access);
      return context.json({ input_tokens: Math.ceil(text.length / CHARACTERS_PER_TOKEN) });
    },
  },
];

/** OpenAI's clients send it as a bearer token, Anthropic's as `x-api-key`. */
function keyOf(context: ApiContext): string {
  return context.req.header("x-api-key") ?? bearerOf(context, "key");
}

function bodyOf({ env, req }: ApiContext, { scope }: RolloutAccess): Promise<string> {
  return readText(env, req.raw, scope.orgId, LIMITS.agentCallBytes);
}

async function answerCall(context: ApiContext, form: Form): Promise<Response> {
  const key = idempotencyKeyOf(context.req.raw);
  const train = headerAs(Train, context.req.raw, TRAIN) !== "false";
  const access = await accessOf(context, keyOf(context));
  const text = await bodyOf(context, access);
  const request = parsed(form, jsonOfText(text));
  if (request instanceof FormError) {
    const { message, param } = request;
    return Response.json(form.refusal({ status: 400, code: "invalid_request", message, param }), { status: 400 });
  }
  const hash = sha256Hex(`${form.name} ${text}`);
  const retry = Number(context.req.header("x-stainless-retry-count") ?? 0) > 0;
  const reply = service(context).callModel(context.env, access, { ...request.call, hash, key, retry, train });
  if (!request.stream) return whole(form, await reply, request, access);
  const soon = await Promise.race([reply, afterMs(FIRST_MS)]);
  if (soon !== null && soon.kind === "refused") return whole(form, soon, request, access);
  return streamed(context, form, reply, request, access);
}

function parsed(form: Form, body: Json): FormRequest | FormError {
  try {
    return form.parse(body);
  } catch (thrown) {
    if (thrown instanceof FormError) return thrown;
    throw thrown;
  }
}

async function afterMs(ms: number): Promise<null> {
  await scheduler.wait(ms);
  return null;
}

function whole(form: Form, reply: AgentReply, { model, echo }: FormRequest, access: RolloutAccess): Response {
  if (reply.kind === "answered") return Response.json(form.whole(formReply(reply, model, access), echo));
  const { status, code, message } = reply;
  const headers = status === 429 ? { "retry-after": "1" } : {};
  return Response.json(form.refusal({ status, code, message, param: null }), { status, headers });
}

function formReply(answer: AgentAnswer, asked: string, { rollout_id }: RolloutAccess): FormReply {
  const { turn, answered_at, model, message, finish_reason, usage } = answer;
  const created = Math.floor(answered_at / 1000);
  return { id: `${rollout_id}_${turn}`, created, model: model ?? asked, message, finish_reason, usage };
}

function streamed(
  context: ApiContext,
  form: Form,
  reply: Promise<AgentReply>,
  { model, echo }: FormRequest,
  access: RolloutAccess,
): Response {
  const encoder = new TextEncoder();
  let texts: Iterator<string> | null = null;
  const events = (answered: AgentReply): Iterable<string> => {
    if (answered.kind === "answered") return form.events(formReply(answered, model, access), echo);
    const { status, code, message } = answered;
    return [form.refusalEvents({ status, code, message, param: null })];
  };
  const failed = (thrown: unknown): AgentReply => {
    logError(
      "a model call of an agent failed",
      { rollout_id: access.rollout_id, request_id: context.var.requestId },
      thrown,
    );
    return { kind: "refused", status: 503, code: "unavailable", message: "the platform did not answer: try again" };
  };
  const settled = reply.catch(failed);
  const body = pulledStream({
    next: async () => {
      const answered = texts === null ? await Promise.race([settled, afterMs(ALIVE_MS)]) : null;
      if (answered !== null) texts = events(answered)[Symbol.iterator]();
      if (texts === null) return encoder.encode(ALIVE);
      const text = texts.next();
      return text.done === true ? null : encoder.encode(text.value);
    },
    end: () => undefined,
  });
  return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-store" } });
}
