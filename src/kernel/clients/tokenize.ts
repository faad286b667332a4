/**
 * `POST /tokenize`, by which the server's chat template renders messages as ids. It is vLLM's, and is beside `/v1`, not
 * under it. Nothing is retried here.
 *
 * If the server refuses to tokenise, the prompt is sent as messages, and the call does not fail. Every other failure of
 * `/tokenize` is that of the call, which was not sent.
 */
import { InvalidModelResponseError, ModelError } from "../../contract/errors.ts";
import type { Messages, ToolDefinition } from "../../contract/messages.ts";
import type { TokenPrompt } from "../../contract/prompts.ts";
import type { Sampling } from "../../contract/sampling.ts";
import { idsAfterAnswer, type Renderings, tokenPromptOf } from "../../core/rollout/token-prompt.ts";
import { wireMessage } from "../../core/rollout/wire-message.ts";
import { Tokenized } from "../../core/schema/tokenized.ts";
import { type CallOutcome, type Destination, postCall } from "./inference.ts";

/** Fields of `extra_body` by which the template renders messages. */
const OF_TEMPLATE: ReadonlySet<string> = new Set(["chat_template", "chat_template_kwargs", "add_special_tokens"]);

interface ToTokenize {
  readonly model: string;
  readonly tools?: readonly ToolDefinition[];
  readonly sampling: Sampling;
}

type Failed = Extract<CallOutcome, { kind: "failed" }>;
type Stopped = Failed | { readonly kind: "aborted" };
type NotTokenized = Exclude<CallOutcome<Tokenized>, { kind: "answered" }>;

/** How a prompt is sent. */
export interface DecidedPrompt {
  readonly kind: "decided";
  readonly token_prompt: TokenPrompt;
}

/** `lastIds`: see `idsAfterAnswer`. Returns the outcome of the call if its server does not answer. */
export async function decidePrompt(
  where: Destination,
  asked: ToTokenize,
  lastIds: readonly number[],
  conversations: Renderings<Messages>,
): Promise<DecidedPrompt | Stopped> {
  // One after the other: a call has one connection.
  const before = await tokenize(where, asked, "before", conversations.before);
  if (before.kind !== "answered") return afterRefusal(before);
  const one = await tokenize(where, asked, "one", conversations.one);
  if (one.kind !== "answered") return afterRefusal(one);
  const other = await tokenize(where, asked, "other", conversations.other);
  if (other.kind !== "answered") return afterRefusal(other);
  const { changed: asChanged } = conversations;
  const changed = asChanged && (await tokenize(where, asked, "changed", asChanged));
  if (changed !== undefined && changed.kind !== "answered") return afterRefusal(changed);
  const { tokens, max_model_len = null } = one.response;
  const rendered = {
    ...{ before: before.response.tokens, one: tokens, other: other.response.tokens },
    ...(changed && { changed: changed.response.tokens }),
  };
  const suffix = idsAfterAnswer(lastIds, rendered);
  const token_prompt = typeof suffix === "string" ? { messages: suffix } : tokenPromptOf(suffix, max_model_len);
  return { kind: "decided", token_prompt };
}

function tokenize(
  where: Destination,
  asked: ToTokenize,
  name: keyof Renderings<Messages>,
  messages: Messages,
): Promise<CallOutcome<Tokenized>> {
  const named = { ...where, idempotency_key: `${where.idempotency_key}:tokenize:${name}` };
  return tokenizeMessages(named, asked, messages, name !== "before");
}

/** Has the server's template render messages. `continues`: up to the beginning of the next answer. */
export async function tokenizeMessages(
  where: Destination,
  { model, tools = [], sampling: { extra_body } }: ToTokenize,
  messages: Messages,
  continues: boolean,
): Promise<CallOutcome<Tokenized>> {
  const template = Object.entries(extra_body ?? {}).filter(([field]) => OF_TEMPLATE.has(field));
  const fields = { model, messages: messages.map(wireMessage), add_generation_prompt: continues };
  const base_url = where.base_url.replace(/\/+$/, "").replace(/\/v1$/, "");
  const body = { ...Object.fromEntries(template), ...fields, ...(tools.length > 0 && { tools }) };
  return await postCall({ ...where, base_url }, "/tokenize", body, (reply) => {
    const parsed = Tokenized.safeParse(reply);
    if (parsed.success) return parsed.data;
    throw new InvalidModelResponseError("the reply of /tokenize has no list of token ids (tokens)");
  });
}

/** No token was sampled, whatever happened to the request. */
function afterRefusal(outcome: NotTokenized): DecidedPrompt | Stopped {
  if (outcome.kind === "aborted") return outcome;
  const mayPass =
    outcome.kind === "failed" && outcome.retryable && !(outcome.error instanceof InvalidModelResponseError);
  if (!mayPass) return { kind: "decided", token_prompt: { messages: "tokenize_refused" } };
  const { status, late, retry_after_ms } = outcome;
  const error = new ModelError(`/tokenize: ${outcome.error.message}`);
  const kept = { ...(status !== undefined && { status }), ...(late && { late }) };
  return { kind: "failed", error, retryable: true, retry_after_ms, ...kept };
}
