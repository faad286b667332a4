/** The checks of a run whose prompts are token ids that its request alone does not allow: see core/rollout/token-prompt.ts. */
import type { EvalRequest } from "../../../contract/eval-request.ts";
import { type TokenForm, unfitForTokenIds } from "../../../contract/prompts.ts";
import { mergeSampling } from "../../../contract/sampling.ts";
import type { Scope } from "../../../contract/scope.ts";
import { callModel } from "../../clients/inference.ts";
import { tokenizeMessages } from "../../clients/tokenize.ts";
import { accessOf, EndpointUnusable } from "../../endpoint/call.ts";
import { type Result, refuse } from "../../messages/refusal.ts";
import type { RunEndpoint } from "./endpoint.ts";
import type { Played } from "./play.ts";

const DEADLINE_MS = 10_000;
const QUESTION = [{ role: "user" as const, content: "Say yes." }];

type Asked = Pick<EvalRequest, "model" | "sampling"> & { readonly prompts?: EvalRequest["prompts"] };

/**
 * Refuses prompts of token ids if an environment samples with a field that they cannot have, or if the endpoint does
 * not take them. A server that does not answer now is not refused: its calls will wait for it. A fleet's engines are
 * not asked here. A run that calls no model, such as one that rescores another, is not refused.
 */
export async function refusePrompts(
  env: Env,
  scope: Scope,
  { prompts, model, sampling }: Asked,
  { players }: Played["environment"]["description"],
  { place }: RunEndpoint,
): Promise<Result<never> | null> {
  if (prompts === undefined || prompts === "messages" || place === null) return null;
  const refused = (why: string) => refuse("invalid_request", `prompts: ${why}`, "prompts");
  const unfit = players.map((player) => unfitForTokenIds(mergeSampling(player.sampling, sampling)));
  const field = unfit.find((name) => name !== null) ?? null;
  if (field !== null) return refused(`${prompts} cannot be combined with the environment's ${field}`);
  if (place.kind !== "endpoint") return null;
  try {
    const access = await accessOf(env, scope, place);
    const why = await whyNoTokenIds(access, { model, sampling }, prompts);
    return why === null ? null : refused(why);
  } catch (thrown) {
    if (!(thrown instanceof EndpointUnusable)) throw thrown;
    return refuse("conflict", `${thrown.message}: send it again`, "endpoint");
  }
}

type Access = Pick<Parameters<typeof callModel>[0], "base_url" | "api_key" | "send" | "refuses">;

/** Renders a question and has one token sampled after its ids. Null if the endpoint does both, or does not answer. */
async function whyNoTokenIds(
  access: Access,
  asked: Pick<Asked, "model" | "sampling">,
  form: TokenForm,
): Promise<string | null> {
  const where = {
    ...access,
    idempotency_key: `probe:${crypto.randomUUID()}`,
    signal: AbortSignal.timeout(DEADLINE_MS),
  };
  const rendered = await tokenizeMessages(where, asked, QUESTION, true);
  if (rendered.kind === "failed" && !isMissing(rendered.status)) return null;
  if (rendered.kind === "aborted") return null;
  if (rendered.kind === "failed" && rendered.status !== undefined && REFUSED.includes(rendered.status)) {
    return `the endpoint's /tokenize, which ${form} needs, refused a question (${rendered.error.message})`;
  }
  if (rendered.kind !== "answered") {
    return `the endpoint has no /tokenize beside /v1, which ${form} needs (vLLM has it)`;
  }
  const { tokens: ids, max_model_len = null } = rendered.response;
  const chat = form === "chat_token_ids";
  const route = chat ? "/v1/chat/completions/tokens" : "/v1/completions";
  const outcome = await callModel({
    ...where,
    ...{ model: asked.model, messages: QUESTION, tools: [], token_prompt: { ids, max_model_len, chat } },
    sampling: { max_tokens: 1, temperature: 0, logprobs: true, extra_body: { return_token_ids: true } },
  });
  if (outcome.kind === "failed" && isMissing(outcome.status)) {
    return `the endpoint does not take token ids at ${route} (${outcome.error.message})`;
  }
  if (outcome.kind !== "answered" || outcome.response.completion_ids !== null) return null;
  return `the endpoint's ${route} returns no token ids (return_token_ids)`;
}

/** Statuses of a server that has the route and does not take the request, and of one that does not have it. */
const REFUSED = [400, 415, 422];
const MISSING = [404, 405, 501];

function isMissing(status: number | undefined): boolean {
  return status !== undefined && [...REFUSED, ...MISSING].includes(status);
}
