/**
 * Loads the turns of a rollout in small blocks, when they come into view, and drops them soon after they have left it.
 * Memory is therefore bounded by the window, however long the rollout is.
 */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import type { Message } from "../../../contract/messages.ts";
import type { Beginning, MessageBeginning, ShownTurn, WholeTurn } from "../../../contract/turns.ts";
import { api } from "../../client.ts";

const BLOCK = 10;
/** How long a block is kept after it has left the view. */
const KEPT_MS = 10_000;
/** An answered turn never changes. */
const NEVER = Number.POSITIVE_INFINITY;

/** The block that contains this turn; `total`: the current number of turns. Undefined if there is no such turn. */
export function useTurn(id: string, index: number, total: number): UseQueryResult<ShownTurn | undefined> {
  const first = index - (index % BLOCK);
  const end = Math.min(first + BLOCK, total);
  return useQuery({
    queryKey: ["turns", id, first, end],
    queryFn: ({ signal }) => readBlock(id, first, end, signal),
    select: (turns) => turns[index - first],
    enabled: index >= 0 && index < total,
    staleTime: NEVER,
    gcTime: KEPT_MS,
    refetchOnWindowFocus: false,
  });
}

/** A page of turns ends early if they are long: then the next one is read. */
async function readBlock(id: string, first: number, end: number, signal: AbortSignal): Promise<readonly ShownTurn[]> {
  const turns: ShownTurn[] = [];
  while (first + turns.length < end) {
    const at = first + turns.length;
    const query = { limit: end - at, ...(at > 0 && { after: at - 1 }) };
    const { data } = await api.rollouts.turns.list(id, query, { signal });
    if (data.length === 0) break;
    turns.push(...data);
  }
  return turns;
}

/** One turn with all of its texts, loaded on request. */
export function useWholeTurn(id: string, index: number, wanted: boolean): UseQueryResult<WholeTurn> {
  return useQuery({
    queryKey: ["turn", id, index],
    queryFn: ({ signal }) => api.rollouts.turns.get(id, index, { signal }),
    enabled: wanted,
    staleTime: NEVER,
    gcTime: KEPT_MS,
    refetchOnWindowFocus: false,
  });
}

/** The texts of a turn: its own messages, and the results of its calls. */
export interface TurnTexts {
  readonly append: readonly MessageBeginning[];
  readonly appendLeftOut: number;
  readonly completion: MessageBeginning;
  /** True if some of it is not loaded. */
  readonly cut: boolean;
}

export function textsOf({ prompt, completion }: Pick<ShownTurn, "prompt" | "completion">): TurnTexts {
  const { append, left_out: appendLeftOut } = prompt;
  const cut = appendLeftOut > 0 || [completion, ...append].some(isCut);
  return { append, appendLeftOut, completion, cut };
}

/** The texts of the whole turn. Its messages are stored as they were sent, so they are validated here. */
export function wholeTexts({ prompt, completion }: WholeTurn): TurnTexts {
  const append = prompt.append.map((message) => wholeMessage(message as unknown));
  return { append, appendLeftOut: 0, completion: wholeMessage(completion as unknown), cut: false };
}

function wholeMessage(value: unknown): MessageBeginning {
  const { role, name, tool_call_id, content, reasoning_content, tool_calls = [] } = value as Message;
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  return {
    role,
    ...(name !== undefined && { name }),
    ...(tool_call_id !== undefined && { tool_call_id }),
    content: parts.map((part) => ({ type: part.type, ...whole(partText(part)) })),
    ...(reasoning_content !== undefined && { reasoning: whole(reasoning_content) }),
    tool_calls: tool_calls.map(({ id, function: called }) => {
      return { id, name: called.name, arguments: whole(called.arguments) };
    }),
    left_out: 0,
  };
}

function partText(part: { readonly type: string; readonly [field: string]: unknown }): string {
  return part.type === "text" ? String(part["text"]) : JSON.stringify(part);
}

function whole(text: string): Beginning {
  return { text, length: text.length };
}

export function isCut({ content, reasoning, tool_calls = [], left_out }: MessageBeginning): boolean {
  const texts = [...content, ...(reasoning ? [reasoning] : []), ...tool_calls.map((call) => call.arguments)];
  return left_out > 0 || texts.some(({ text, length }) => text.length < length);
}

/** The text of a message, its text parts in their order. */
export function textIn({ content }: MessageBeginning): string {
  return content.map(({ text }) => text).join("\n");
}

/** The whole turn as plain text, for the clipboard. */
export function plainText(turn: WholeTurn): string {
  const { append, completion } = wholeTexts(turn);
  return [...append, completion].map(plainMessage).join("\n\n");
}

function plainMessage(message: MessageBeginning): string {
  const { role, tool_call_id, reasoning, tool_calls = [] } = message;
  const head = tool_call_id === undefined ? `## ${role}` : `## ${role} (${tool_call_id})`;
  const calls = tool_calls.map((call) => `-> ${call.name}(${call.arguments.text}) [${call.id}]`);
  return [head, ...(reasoning ? [`<thinking>\n${reasoning.text}\n</thinking>`] : []), textIn(message), ...calls]
    .filter((line) => line !== "")
    .join("\n");
}
