/**
 * POST /v1/chat/completions.
 *
 * Invariants. Tool calls are parsed only where the request has tools and did not say `tool_choice: "none"`; token ids,
 * logprobs and usage are those of the tokens as sampled either way. The prompt's ids stand at the top level, a
 * choice's ids in the choice, as in vLLM.
 */
import { chatLogprobs, finishReason, messageOf } from "./chat-reply.ts";
import { streamChat } from "./chat-stream.ts";
import { renderChat } from "./chat-template.ts";
import { type Choice, sampleChoices } from "./choice.ts";
import { RequestError } from "./errors.ts";
import { type Handler, headingOf, type PolicyContext, requireModel, usageOf, versionsOf } from "./reply.ts";
import { ChatRequest, parseSampled } from "./request-schemas.ts";
import { chatPlan, roomFor } from "./sampling.ts";

export const chatCompletions: Handler = async (context, { json, signal }) => {
  const request = parseSampled(ChatRequest, json());
  requireModel(context, request.model);
  checkToolChoice(request);
  const plan = chatPlan(request, context.serving);
  const prompt = promptOf(request);
  // Checked before a stream begins: what is wrong must be its status.
  roomFor(plan, prompt.length, context.engine.contextLength);
  if (request.stream) {
    const heading = headingOf(context, "chatcmpl", "chat.completion.chunk", request.request_id);
    const job = { engine: context.engine, heading, request, plan, prompt, signal };
    return { kind: "events", run: (send) => streamChat(job, send) };
  }
  const choices = await sampleChoices(context.engine, { prompts: [prompt], plan, signal });
  return { kind: "json", body: chatBody(context, request, prompt, choices) };
};

/** The request's messages as token ids. Throws a 400 when both ways to end the prompt are asked for. */
export function promptOf(
  request: Pick<ChatRequest, "messages" | "add_generation_prompt" | "continue_final_message">,
): readonly number[] {
  const continueFinalMessage = request.continue_final_message ?? false;
  const addGenerationPrompt = request.add_generation_prompt ?? true;
  if (continueFinalMessage && addGenerationPrompt) {
    throw new RequestError(
      400,
      "continue_final_message: set add_generation_prompt to false as well; the two exclude each other",
      "continue_final_message",
    );
  }
  return renderChat(request.messages, { addGenerationPrompt, continueFinalMessage });
}

function checkToolChoice({ tool_choice: choice, tools }: ChatRequest): void {
  if (choice === undefined || choice === null || choice === "none") return;
  if (choice !== "auto") {
    throw new RequestError(
      400,
      `tool_choice: only "auto" and "none" are supported, a call cannot be forced`,
      "tool_choice",
    );
  }
  if (tools === undefined || tools === null) {
    throw new RequestError(400, "When using `tool_choice`, `tools` must be set.", "tool_choice");
  }
}

function chatBody(
  context: PolicyContext,
  request: ChatRequest,
  prompt: readonly number[],
  choices: readonly Choice[],
): object {
  return {
    ...headingOf(context, "chatcmpl", "chat.completion", request.request_id),
    ...(request.return_token_ids && { prompt_token_ids: prompt }),
    prompt_logprobs: null,
    choices: choices.map((choice) => wireChoice(choice, request)),
    usage: usageOf(choices),
    ...versionsOf(choices),
  };
}

function wireChoice(choice: Choice, request: ChatRequest): object {
  const said = messageOf(choice.text, request);
  return {
    index: choice.index,
    message: {
      role: "assistant",
      content: said.content,
      refusal: null,
      reasoning: null,
      ...(said.toolCalls.length > 0 && { tool_calls: said.toolCalls }),
    },
    ...(request.return_token_ids && { token_ids: choice.tokens.map(({ id }) => id) }),
    logprobs: chatLogprobs(choice.tokens, request),
    finish_reason: finishReason(choice, said),
    stop_reason: choice.stopReason,
  };
}
