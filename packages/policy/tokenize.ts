/** POST /tokenize and /detokenize: what the model sees of a text or a conversation, and back. */
import { promptOf } from "./chat-completions.ts";
import { RequestError } from "./errors.ts";
import { type Handler, requireModel } from "./reply.ts";
import { DetokenizeRequest, parseRequest, TokenizeChatRequest, TokenizeTextRequest } from "./request-schemas.ts";
import { decode, encodeText, tokenText } from "./tokenizer.ts";

export const tokenize: Handler = (context, { json }) => {
  const body = json();
  const chat = typeof body === "object" && body !== null && "messages" in body;
  const request = parseRequest(chat ? TokenizeChatRequest : TokenizeTextRequest, body);
  requireModel(context, request.model);
  const tokens = "messages" in request ? promptOf(request) : encodeText(request.prompt);
  return {
    kind: "json",
    body: {
      count: tokens.length,
      max_model_len: context.engine.contextLength,
      tokens,
      token_strs: request.return_token_strs ? tokens.map(tokenText) : null,
    },
  };
};

export const detokenize: Handler = (context, { json }) => {
  const { model, tokens } = parseRequest(DetokenizeRequest, json());
  requireModel(context, model);
  const { vocabularySize } = context.engine;
  const wrong = tokens.find((id) => id >= vocabularySize);
  if (wrong !== undefined) {
    const message = `tokens: id ${wrong} is out of the vocabulary of ${vocabularySize}`;
    throw new RequestError(400, message, "tokens");
  }
  return { kind: "json", body: { prompt: decode(tokens) } };
};
