/**
 * POST /v1/completions: text after text, or token ids after token ids.
 *
 * Invariants. A prompt given as ids is taken as it stands, specials included; a prompt given as text never holds a
 * special. Several prompts and `n` make prompts × n choices, numbered prompt by prompt. The prompt's ids stand in the
 * choice here, as in vLLM.
 */
import { type Choice, sampleChoices } from "./choice.ts";
import { completionLogprobs } from "./completion-logprobs.ts";
import { streamCompletions } from "./completion-stream.ts";
import { RequestError } from "./errors.ts";
import { type Handler, headingOf, requireModel, usageOf, versionsOf } from "./reply.ts";
import { CompletionRequest, parseSampled } from "./request-schemas.ts";
import { completionPlan, roomFor } from "./sampling.ts";
import { encodeText } from "./tokenizer.ts";

type Prompts = readonly (readonly number[])[];

export const completions: Handler = async (context, { json, signal }) => {
  const { engine } = context;
  const request = parseSampled(CompletionRequest, json());
  requireModel(context, request.model);
  const plan = completionPlan(request, context.serving);
  const prompts = promptsOf(request.prompt, engine.vocabularySize);
  // Checked before a stream begins: what is wrong must be its status.
  for (const prompt of prompts) roomFor(plan, prompt.length, engine.contextLength);
  const heading = headingOf(context, "cmpl", "text_completion", request.request_id);
  if (request.stream) {
    const stream = { engine, heading, request, plan, prompts, signal };
    return { kind: "events", run: (send) => streamCompletions(stream, send) };
  }
  const choices = await sampleChoices(engine, { prompts, plan, signal });
  const body = {
    ...heading,
    choices: choices.map((choice) => wireChoice(choice, request)),
    usage: usageOf(choices),
    ...versionsOf(choices),
  };
  return { kind: "json", body };
};

function promptsOf(prompt: CompletionRequest["prompt"], vocabulary: number): Prompts {
  const prompts = typeof prompt === "string" ? [encodeText(prompt)] : listOf(prompt);
  for (const ids of prompts) {
    if (ids.length === 0) throw new RequestError(400, "prompt: it is empty", "prompt");
    const wrong = ids.find((id) => id >= vocabulary);
    if (wrong === undefined) continue;
    const message = `prompt: token id ${wrong} is out of the vocabulary of ${vocabulary}`;
    throw new RequestError(400, message, "prompt");
  }
  return prompts;
}

function listOf(list: readonly (string | number | readonly number[])[]): Prompts {
  const ids = list.filter((part) => typeof part === "number");
  if (ids.length > 0) return [ids];
  return list
    .filter((part) => typeof part !== "number")
    .map((part) => (typeof part === "string" ? encodeText(part) : part));
}

function wireChoice(choice: Choice, request: CompletionRequest): object {
  return {
    index: choice.index,
    text: choice.text,
    ...(request.return_token_ids && {
      token_ids: choice.tokens.map(({ id }) => id),
      prompt_token_ids: choice.prompt,
    }),
    logprobs: completionLogprobs(choice.tokens, request, 0),
    finish_reason: choice.finishReason,
    stop_reason: choice.stopReason,
    prompt_logprobs: null,
  };
}
