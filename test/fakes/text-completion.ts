/** Converts a chat completion to a completion of a prompt, whole or streamed, in vLLM's format: `POST /v1/completions`. */
import { isRecord } from "../../src/contract/json.ts";

type Members = Readonly<Record<string, unknown>>;

/** The completion whose text is the content of the chat completion; ids and logprobs are columns of its choice. */
export function textCompletionBody({ choices, prompt_token_ids, ...completion }: Members): Record<string, unknown> {
  const [choice = {}] = Array.isArray(choices) ? choices.filter(isRecord) : [];
  const { message, logprobs, token_ids, finish_reason = null } = choice;
  const entries =
    isRecord(logprobs) && Array.isArray(logprobs["content"]) ? logprobs["content"].filter(isRecord) : null;
  return {
    ...completion,
    object: "text_completion",
    choices: [
      {
        index: 0,
        text: isRecord(message) ? (message["content"] ?? "") : "",
        ...(token_ids !== undefined && { token_ids }),
        ...(prompt_token_ids !== undefined && { prompt_token_ids }),
        logprobs: entries && {
          tokens: entries.map(({ token }) => token),
          token_logprobs: entries.map(({ logprob }) => logprob),
          top_logprobs: entries.map(({ token, logprob }) => ({ [String(token)]: logprob })),
          text_offset: entries.map((_, at) => at),
        },
        finish_reason,
        stop_reason: null,
        prompt_logprobs: null,
      },
    ],
  };
}

/** The same completion as server-sent events: a chunk a token, then one with the finish reason, then the usage. */
export function textStreamOf({ choices, usage, ...completion }: Members): string {
  const [choice = {}] = Array.isArray(choices) ? choices.filter(isRecord) : [];
  const { text, token_ids, prompt_token_ids, logprobs, finish_reason } = choice;
  const ids = Array.isArray(token_ids) ? token_ids : [];
  const columns = isRecord(logprobs) ? logprobs : {};
  const at = (place: number, column: unknown) => (Array.isArray(column) ? column.slice(place, place + 1) : column);
  const pieces = Array.from({ length: Math.max(1, ids.length) }, (_, place) => ({
    index: 0,
    text: place === 0 ? text : "",
    ...(token_ids !== undefined && { token_ids: at(place, token_ids) }),
    ...(place === 0 && prompt_token_ids !== undefined && { prompt_token_ids }),
    logprobs:
      logprobs && Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, at(place, column)])),
    finish_reason: null,
    stop_reason: null,
  }));
  const end = { index: 0, text: "", logprobs: null, finish_reason, stop_reason: null };
  const chunks = [
    ...[...pieces, end].map((piece) => ({ ...completion, choices: [piece] })),
    { ...completion, choices: [], usage },
  ];
  return [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), "data: [DONE]\n\n"].join("");
}
