/** Converts a chat completion to the stream that a server would send: OpenAI's chunks as server-sent events. */

type Members = Readonly<Record<string, unknown>>;

/** How servers differ in their streams. Absent members mean OpenAI's style. */
export interface StreamStyle {
  /** False: no `data: [DONE]` at the end. */
  readonly done?: boolean;
  /** Lines before the first event and between events, such as `: keep-alive`. */
  readonly comment?: string;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
  /** Each tool call in one piece, and all of them with the index 0 (Gemini). */
  readonly wholeCalls?: boolean;
  /** False: without the usage, as servers send it if it is not requested. */
  readonly usage?: boolean;
}

/** The text of the stream. A completion without choices is one unchanged event. */
export function streamOf(completion: unknown, style: StreamStyle = {}): string {
  const { done = true, comment, lineEnd = "\n" } = style;
  const events = chunksOf(completion as Members, style).map((chunk) => `data: ${JSON.stringify(chunk)}`);
  const all = done ? [...events, "data: [DONE]"] : events;
  const lines = all.flatMap((event) => [...(comment === undefined ? [] : [comment, ""]), event, ""]);
  return [...lines, ""].join("\n").replaceAll("\n", lineEnd);
}

function chunksOf(completion: Members, style: StreamStyle): Members[] {
  const { choices, usage, prompt_token_ids: promptIds, ...rest } = completion;
  const [choice] = Array.isArray(choices) ? choices : [];
  if (choice === undefined) return [completion];
  const { message, finish_reason = null, logprobs, token_ids, index = 0, ...more }: Members = choice;
  // OpenAI's own SDK passes over an event that is of another kind.
  const head = { ...rest, object: "chat.completion.chunk" };
  const chunkOf = (delta: unknown, other: Members = {}) => ({
    ...head,
    choices: [{ index, delta, finish_reason: null, ...other }],
  });
  const [first = {}, ...deltas] = deltasOf(message as Members, style);
  // Each chunk has the ids and logprobs of its own tokens; those of the end mark are in the last one.
  const chunks = [...deltas, {}];
  const tokensOf = (at: number): Members => ({
    ...(token_ids !== undefined && { token_ids: shareOf(token_ids, at, chunks.length) }),
    ...(logprobs !== undefined && { logprobs: logprobsOf(logprobs, at, chunks.length) }),
  });
  const pieces = chunks.map((delta, at) => {
    return chunkOf(delta, { ...tokensOf(at), ...(at === chunks.length - 1 && { finish_reason, ...more }) });
  });
  const counted = usage !== undefined && style.usage !== false;
  return [
    { ...chunkOf(first), ...(promptIds !== undefined && { prompt_token_ids: promptIds }) },
    ...pieces,
    ...(counted ? [{ ...head, choices: [], usage }] : []),
  ];
}

/** The part of a list that belongs to the chunk `at` of `count`. */
function shareOf(list: unknown, at: number, count: number): unknown {
  if (!Array.isArray(list)) return list;
  return list.slice(Math.floor((at * list.length) / count), Math.floor(((at + 1) * list.length) / count));
}

function logprobsOf(logprobs: unknown, at: number, count: number): unknown {
  if (typeof logprobs !== "object" || logprobs === null || !("content" in logprobs)) return logprobs;
  return { ...logprobs, content: shareOf(logprobs.content, at, count) };
}

function deltasOf({ role = "assistant", content, tool_calls: calls, ...rest }: Members, style: StreamStyle): Members[] {
  const pieces = Object.entries(rest).flatMap(([name, value]) => piecesOf(value).map((piece) => ({ [name]: piece })));
  const told = content === undefined ? [] : piecesOf(content).map((piece) => ({ content: piece }));
  const called = Array.isArray(calls) ? calls.flatMap((call, at) => callPieces(call, at, style)) : [];
  return [{ role, content: null }, ...pieces, ...told, ...called];
}

/** Splits a text of several characters into two pieces. */
function piecesOf(value: unknown): unknown[] {
  if (typeof value !== "string" || value.length < 2) return [value];
  const half = Math.ceil(value.length / 2);
  return [value.slice(0, half), value.slice(half)];
}

function callPieces(call: Members, at: number, { wholeCalls = false }: StreamStyle): Members[] {
  if (wholeCalls || call["function"] === undefined) return [{ tool_calls: [{ ...call, index: wholeCalls ? 0 : at }] }];
  const called = (call["function"] ?? {}) as Members;
  const [first, ...others] = piecesOf(called["arguments"]);
  return [
    { tool_calls: [{ ...call, index: at, function: { ...called, arguments: first } }] },
    ...others.map((piece) => ({ tool_calls: [{ index: at, function: { arguments: piece } }] })),
  ];
}
