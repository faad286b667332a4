/**
 * The replies in a training plan: right about half of the time, by the call's place alone, and with the ids and
 * logprobs of an engine.
 */
import { textOf } from "../../../src/contract/messages.ts";
import { seededRandom } from "../../../src/contract/random.ts";
import type { ReplyParts } from "../../fakes/completion-body.ts";
import { probeReply } from "../../fakes/probe-reply.ts";
import type { ModelRequest } from "../../fakes/scripted-model.ts";
import { withTokens } from "../../fakes/token-model.ts";

export function sayingOf(seed: number, request: ModelRequest): ReplyParts {
  const { messages, tools, headers } = request;
  if (headers["idempotency-key"] === undefined) return probeReply(request.body);
  const random = seededRandom("training model", seed, String(headers["idempotency-key"]));
  const reply = tools.length === 0 ? reversed(textOf(messages.at(-1)), random) : guessed(random);
  return withTokens(reply, messages);
}

function reversed(question: string, random: () => number): ReplyParts {
  const word = [...(question.split(": ").at(-1) ?? "")];
  return { content: (random() < 0.5 ? word.reverse() : word).join("") };
}

function guessed(random: () => number): ReplyParts {
  const number = 1 + Math.floor(random() * 15);
  return { tool_calls: [{ id: "call_0", name: "guess", arguments: { number } }] };
}
