/**
 * Runs one tool call, from the text that the model sent to the content it gets back: decodes, checks and runs.
 *
 * Invariants. Every fault of a call is thrown as one error of one of the two stages; the environment decides whether
 * the model reads it or the rollout ends. A result that is a string, or a list of text and image parts, is used as it
 * is; undefined becomes null, and everything else its JSON.
 */
import type * as z from "zod";
import { EnvError, ToolCallError } from "../../contract/errors.ts";
import { inexactMessage, isRawNumber, parseKeepingNumbers, rawNumber, wholeOf } from "../../contract/exact-json.ts";
import { isRecord, type Json } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Content, type ContentPart, type ToolCall } from "../../contract/messages.ts";
import { valueAt } from "../field-path.ts";
import { holdsRaw } from "../schema/exact-numbers.ts";
import { exceedsUtf8 } from "../size.ts";
import type { AnyTool, Call, ToolArgs } from "./contract.ts";
import type { HookContext } from "./hook-state.ts";

/**
 * The decoded arguments of a call, of any type, with raw numbers where a double would change one. Many servers send an
 * empty text or null for a call without arguments. Throws SyntaxError if the text is not JSON.
 */
export function decodeArguments(call: ToolCall): Json {
  const text = call.function.arguments.trim();
  return text === "" || text === "null" ? {} : (parseKeepingNumbers(text) as Json);
}

/**
 * The arguments with bigints for numbers that a double would change; unchanged for a tool that takes raw numbers. A
 * tool never runs with a rounded number: throws ToolCallError with the field if its parameters do not accept a bigint.
 */
export function withExactNumbers(tool: AnyTool | undefined, args: ToolArgs): ToolArgs {
  if (tool?.takesRawNumbers === true || !holdsRaw(args)) return args;
  const found: Path[] = [];
  const exact = withBigints(args, [], found) as ToolArgs;
  if (tool === undefined) return exact;
  const visible = Object.entries(exact).filter(([name]) => !tool.hidden.includes(name));
  const parsed = parseArguments(tool.parameters, Object.fromEntries(visible));
  if (!parsed.success) throw unfit(tool.name, faultsOf(parsed.error, exact));
  const rounded = found.filter((path) => typeof valueAt(parsed.data, path) === "number");
  if (rounded.length > 0)
    throw unfit(
      tool.name,
      rounded.map((path) => inexactAt(path, valueAt(exact, path))),
    );
  return exact;
}

function withBigints(value: unknown, path: Path, found: Path[]): unknown {
  if (isRawNumber(value)) {
    const whole = wholeOf(value.rawJSON);
    if (whole === null) throw badArguments(`bad arguments: ${inexactAt(path, value.rawJSON)}`);
    found.push(path);
    return BigInt(whole);
  }
  if (Array.isArray(value)) return value.map((item, at) => withBigints(item, [...path, at], found));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, withBigints(member, [...path, name], found)]);
  return Object.fromEntries(members);
}

function faultsOf({ issues }: z.ZodError, args: unknown): string[] {
  return issues.map(({ path, message }) => {
    const sent = valueAt(args, path);
    if (typeof sent === "bigint") return inexactAt(path, sent);
    return path.length === 0 ? message : `${path.join(".")}: ${message}`;
  });
}

function inexactAt(path: Path, number: unknown): string {
  return `${path.join(".")}: ${inexactMessage(String(number))}`;
}

function unfit(name: string, faults: readonly string[]): ToolCallError {
  return badArguments(`bad arguments for ${name}: ${faults.join("; ")}`);
}

export function isObject(sent: Json): sent is ToolArgs {
  return isRecord(sent);
}

/** The error text for arguments that are not an object. */
export function noObject(name: string, sent: Json): string {
  const found = sent === null ? "null" : Array.isArray(sent) ? "an array" : `a ${typeof sent}`;
  return `the arguments of ${name} must be an object, not ${found}`;
}

/** Keys of a turn's calls by id, made unique: some models give two calls the same id. */
export function keysOf(ids: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return ids.map((id) => {
    const n = (seen.get(id) ?? 0) + 1;
    seen.set(id, n);
    return n === 1 ? id : `${id}#${n}`;
  });
}

/** A call that does not match the tool's parameters: Python raises TypeError for it. */
export function badArguments(message: string): ToolCallError {
  return new ToolCallError(message, { cause: new TypeError(message) });
}

/**
 * Checks the arguments and runs the tool within its time. Throws ToolCallError for bad arguments, or the tool's own
 * error.
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
  if (!parsed.success) throw unfit(tool.name, faultsOf(parsed.error, {}));
  if (!tool.idempotent) await unrepeatable(tool.name);
  // `never` because a list of tools has no common argument type; the schema and `requireHidden` have just checked.
  const running = tool.run({ ...parsed.data, ...injected } as never, call);
  const result = await limit("tool", `the tool ${tool.name}`, running);
  return resultContent(tool.name, result);
}

/** Throws EnvError if the environment did not provide a hidden argument: that is its bug, not the model's. */
export function requireHidden(tool: AnyTool, args: Readonly<Record<string, unknown>>): void {
  const missing = tool.hidden.find((name) => args[name] === undefined);
  if (missing === undefined) return;
  throw new EnvError(`updateToolArgs returned no value for the hidden argument ${missing} of ${tool.name}`);
}

function resultContent(name: string, result: unknown): Content {
  const parts = contentParts(result);
  const text = typeof result === "string" ? result : (JSON.stringify(result, writeBigint) ?? "null");
  if (exceedsUtf8(text, LIMITS.toolResultBytes)) {
    throw new ToolCallError(`the result of ${name} is over ${LIMITS.toolResultBytes} bytes`);
  }
  return parts ?? text;
}

/** A tool may return the bigint that it was given. */
function writeBigint(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? rawNumber(String(value)) : value;
}

/** The list itself if it is empty or all of it is text and images, which tool messages may hold; else null. */
function contentParts(result: unknown): readonly ContentPart[] | null {
  if (!Array.isArray(result)) return null;
  const { data } = Content.safeParse(result);
  if (!Array.isArray(data)) return null;
  return data.every(({ type }) => type === "text" || type === "image_url") ? data : null;
}

/**
 * A call's arguments, checked against the tool's parameters.
 *
 * Invariants. Under a strict schema a model omits a parameter by sending null (tool.ts), at any depth. So a null is
 * treated as omitted if the parameters refuse it but accept the member's absence. Every other null stays, and is
 * refused as sent. The work is that of three checks.
 */
type Path = readonly PropertyKey[];
/** Places below a value, by their next step; an entry without steps marks its own place. */
type Places = Map<PropertyKey, Places>;

export function parseArguments<P extends z.ZodObject>(
  parameters: P,
  args: Readonly<Record<string, unknown>>,
): z.ZodSafeParseResult<z.infer<P>> {
  const asSent = parameters.safeParse(args);
  if (asSent.success) return asSent;
  const nulls = pathsOf(asSent.error.issues).filter((path) => valueAt(args, path) === null);
  if (nulls.length === 0) return asSent;
  const withoutNulls = parameters.safeParse(without(args, placesOf(nulls)));
  if (withoutNulls.success) return withoutNulls;
  const needed = new Set(pathsOf(withoutNulls.error.issues).map(nameOf));
  const omitted = nulls.filter((path) => !needed.has(nameOf(path)));
  return parameters.safeParse(without(args, placesOf(omitted)));
}

/** The paths of issues, including those of each alternative of a union. */
function pathsOf(issues: readonly z.core.$ZodIssue[], base: Path = []): Path[] {
  return issues.flatMap((issue) => {
    const path = [...base, ...issue.path];
    const alternatives = issue.code === "invalid_union" ? issue.errors : [];
    return [path, ...alternatives.flatMap((inner) => pathsOf(inner, path))];
  });
}

function nameOf(path: Path): string {
  return JSON.stringify(path);
}

function placesOf(paths: readonly Path[]): Places {
  const root: Places = new Map();
  for (const path of paths) {
    let at = root;
    for (const key of path) {
      const next: Places = at.get(key) ?? new Map();
      at.set(key, next);
      at = next;
    }
  }
  return root;
}

/** A copy without these members of objects; items of lists stay. */
function without(value: unknown, places: Places): unknown {
  if (places.size === 0) return value;
  if (Array.isArray(value)) {
    return value.map((item, at) => without(item, places.get(at) ?? new Map()));
  }
  if (!isRecord(value)) return value;
  const members = Object.entries(value)
    .filter(([key]) => places.get(key)?.size !== 0)
    .map(([key, member]) => [key, without(member, places.get(key) ?? new Map())]);
  return Object.fromEntries(members);
}
