/**
 * An engine's replies to a probe: one or two tokens, with the likeliest alternatives of the first. Ten tokens with
 * their own logits stand for a vocabulary; half of them are in every prompt.
 */
import type { ReplyParts } from "./completion-body.ts";

/** An engine that is fit for training, or the way in which it is not. */
export type EngineKind =
  | "exact"
  | "no_ids"
  | "raw"
  | "penalties_ignored"
  /**
   * Applies penalties, but the tokens of its prompts have logits slightly below 0, so that a penalty below 1 has almost
   * no effect.
   */
  | "flat"
  | "own_defaults"
  | "short";

const LOGITS = [4, 3.1, 2.3, 1.2, 0.4, 3.6, 2.9, 1.8, 0.9, -0.5];
const FLAT = [-0.05, -0.1, -0.02, -0.15, -0.2, 0.3, 0.2, 0.15, 0.1, 0.05];
const TOKENS = ["2", "1", "\n", ":", " on", "3", " and", ".", ",", "!"];
const IN_PROMPT = LOGITS.length / 2;

export function probeReply(body: Readonly<Record<string, unknown>>, kind: EngineKind = "exact"): ReplyParts {
  if (kind === "no_ids") return { content: "Hi" };
  const tokens = body["max_tokens"] === 1 ? 1 : 2;
  const top = likeliest(body, kind).slice(0, Number(body["top_logprobs"] ?? 0));
  const logprobs = likeliest(body, kind).slice(0, kind === "short" ? 1 : tokens);
  return {
    content: "Hi",
    finish_reason: "length",
    prompt_token_ids: [1, 2, 3],
    token_ids: Array.from({ length: tokens }, (_, at) => at),
    logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: [top],
  };
}

function likeliest(body: Readonly<Record<string, unknown>>, kind: EngineKind) {
  const own = kind === "own_defaults" ? 3 : 1;
  const asked = kind === "penalties_ignored" ? undefined : body["repetition_penalty"];
  const penalty = Number(asked ?? own);
  const temperature = kind === "raw" ? 1 : Number(body["temperature"] ?? 1);
  const logits = (kind === "flat" ? FLAT : LOGITS).map((logit, at) => {
    if (kind === "raw" || at >= IN_PROMPT) return logit / temperature;
    return (logit > 0 ? logit / penalty : logit * penalty) / temperature;
  });
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  const listed = logits.map((logit, at) => ({
    token: TOKENS[at] ?? "",
    logprob: logit - total,
  }));
  return listed.sort((one, other) => other.logprob - one.logprob);
}
