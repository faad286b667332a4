/**
 * One tool call, from the text a model sent to the text it gets back: decode, then check and run.
 *
 * Invariants. Whatever is wrong with a call is thrown as one error of one of the two stages; the environment decides
 * whether the model reads about it or the rollout ends. A result is a string as it is, a list of text and image parts as
 * it is, undefined as null, and everything else as its JSON.
 */
import { EnvError, ToolCallError } from "../../contract/errors.ts";
import { isRecord, type Json } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Content, type ContentPart, type ToolCall } from "../../contract/messages.ts";
import { exceedsUtf8 } from "../utf8.ts";
import type { AnyTool, Call, ToolArgs } from "./contract.ts";
import type { HookContext } from "./hook-state.ts";
import { parseArguments } from "./tool-arguments.ts";

/** What a model sent as the arguments of a call, whatever it is. Throws SyntaxError for text that is no JSON. */
export function decodeArguments(call: ToolCall): Json {
  return JSON.parse(call.function.arguments) as Json;
}

export function isObject(sent: Json): sent is ToolArgs {
  return isRecord(sent);
}

/** Says what stands where an object of arguments should. */
export function noObject(name: string, sent: Json): string {
  const found = sent === null ? "null" : Array.isArray(sent) ? "an array" : `a ${typeof sent}`;
  return `the arguments of ${name} must be an object, not ${found}`;
}

/** What Python calls a TypeError: a call that does not fit the tool. */
export function badArguments(message: string): ToolCallError {
  return new ToolCallError(message, { cause: new TypeError(message) });
}

/**
 * Checks the arguments and runs the tool, within its time. Throws ToolCallError for bad arguments, or what the tool threw.
 */
export async function runTool(
  tool: AnyTool,
  args: Readonly<Record<string, unknown>>,
  call: Call,
  { limit, unrepeatable }: Pick<HookContext, "limit" | "unrepeatable">,
): Promise<Content> {
  const injected = Object.fromEntries(tool.hidden.map((name) => [name, args[name]]));
  const visible = Object.entries(args).filter(([name]) => !tool.hidden.includes(name));
  const parsed = parseArguments(tool.parameters, Object.fromEntries(visible));
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) =>
      issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`,
    );
    throw badArguments(`bad arguments for ${tool.name}: ${faults.join("; ")}`);
  }
  if (!tool.idempotent) unrepeatable(tool.name);
  // `never` because a list of tools has no common argument type; the schema and `requireHidden` have just checked.
  const running = tool.run({ ...parsed.data, ...injected } as never, call);
  const result = await limit("tool", `the tool ${tool.name}`, running);
  return resultContent(tool.name, result);
}

/** Throws EnvError when the environment left out a hidden argument: that is its bug, not the model's. */
export function requireHidden(tool: AnyTool, args: Readonly<Record<string, unknown>>): void {
  const missing = tool.hidden.find((name) => args[name] === undefined);
  if (missing === undefined) return;
  throw new EnvError(`updateToolArgs gave no value for the hidden argument ${missing} of ${tool.name}`);
}

function resultContent(name: string, result: unknown): Content {
  const parts = contentParts(result);
  const text = typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
  if (exceedsUtf8(text, LIMITS.toolResultBytes)) {
    throw new ToolCallError(`the result of ${name} is over ${LIMITS.toolResultBytes} bytes`);
  }
  return parts ?? text;
}

/** The list itself when all of it is text and images, which tool messages may hold; an empty one too. */
function contentParts(result: unknown): readonly ContentPart[] | null {
  if (!Array.isArray(result)) return null;
  const { data } = Content.safeParse(result);
  if (!Array.isArray(data)) return null;
  return data.every(({ type }) => type === "text" || type === "image_url") ? data : null;
}
