/**
 * Selects and names the tools of MCP servers that the model is offered.
 *
 * Invariants. The offered tools are stored as they were listed, so a continued rollout offers the same ones. A tool
 * that no endpoint would accept, or no call could reach, is left out with the reason; it never fails the others. A name
 * has only characters that endpoints accept, and is unique: if servers share a name, the server's name is put before
 * it, and if that is not enough, or too long, a hash of both is appended. A name depends on the set of tools, not on
 * their order.
 */
import * as z from "zod";
import { InfraError } from "../../contract/errors.ts";
import { isRecord, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { ToolDefinition } from "../../contract/messages.ts";
import { seededWords } from "../../contract/random.ts";
import { shortText } from "../../contract/shown-text.ts";
import { usableSchema } from "../schema/usable-schema.ts";
import { exceedsUtf8 } from "../size.ts";

/** A tool in a rollout's state. */
export interface McpTool {
  /** Its name for the model. */
  readonly name: string;
  readonly server: string;
  /** Its name at the server. */
  readonly tool: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly idempotent: boolean;
}

/** A listed tool that the model is not offered. */
export interface LeftOutTool {
  readonly server: string;
  /** Its name; without a name, its place in the list: `#3`. */
  readonly tool: string;
  readonly why: string;
}

/** The unparsed list of one server. */
export interface ListedTools {
  readonly server: string;
  readonly tools: readonly unknown[];
}

export interface OfferedTools {
  readonly tools: readonly McpTool[];
  /** At most `NAMED` of them, and one more with the number of the others. Absent if every tool is offered. */
  readonly left_out?: readonly LeftOutTool[];
}

const NAMED = 100;
const REASON_CHARACTERS = 200;

/** Endpoints accept names of at most 64 of the other characters. */
const UNFIT = /[^A-Za-z0-9_-]/g;
const LONGEST_NAME = 64;
const HASH_CHARACTERS = 8;

/** `taken`: names that are already used. Throws InfraError if tools were listed but none can be offered. */
export function offerTools(listed: readonly ListedTools[], taken: readonly string[]): OfferedTools {
  const read = listed.flatMap(({ server, tools }) => readTools(server, tools));
  const usable = read.flatMap((one) => ("why" in one ? [] : [one]));
  const left_out = read.flatMap((one) => ("why" in one ? [one] : []));
  if (usable.length === 0 && left_out.length > 0) {
    const reasons = left_out.map(({ server, tool, why }) => `${server}: ${tool}: ${why}`).join("; ");
    throw new InfraError(shortText(`no tool of the MCP servers can be used: ${reasons}`, LIMITS.errorCharacters));
  }
  const names = nameTools(usable, taken);
  const tools = usable.map((tool, index) => ({ name: names[index] ?? tool.tool, ...tool }));
  return { tools, ...(left_out.length > 0 && { left_out: fewOf(left_out) }) };
}

function fewOf(left: readonly LeftOutTool[]): readonly LeftOutTool[] {
  const rest = left.length - NAMED;
  const last = left[NAMED];
  if (last === undefined) return left;
  return [...left.slice(0, NAMED), { server: last.server, tool: "…", why: `${rest} more are left out` }];
}

export function definitionOf({ name, description, parameters }: McpTool): ToolDefinition {
  return { type: "function", function: { name, description, parameters } };
}

type Unnamed = Omit<McpTool, "name">;

function readTools(server: string, tools: readonly unknown[]): (Unnamed | LeftOutTool)[] {
  const names = new Set<string>();
  return tools.map((given, index) => {
    const name = isRecord(given) && typeof given["name"] === "string" ? given["name"] : "";
    const tool = name.trim() === "" ? `#${index + 1}` : name;
    const leftOut = (why: string) => ({ server, tool: cut(tool), why: cut(why) });
    if (!isRecord(given) || name.trim() === "") return leftOut("it has no name");
    if (names.has(name)) return leftOut("an earlier tool of this server has the same name");
    names.add(name);
    try {
      return readTool(server, name, given);
    } catch (thrown) {
      if (!(thrown instanceof TypeError)) throw thrown;
      return leftOut(thrown.message);
    }
  });
}

/** Optional members are used only if they have the right type. Throws TypeError with what is wrong. */
function readTool(server: string, tool: string, given: Readonly<Record<string, unknown>>): Unnamed {
  const { annotations, description, title } = Beside.parse(given);
  const { inputSchema } = given;
  const said = description ?? title ?? annotations?.title ?? "";
  if (exceedsUtf8(tool + said, LIMITS.mcpToolBytes)) {
    throw new TypeError(`its name and description are over ${LIMITS.mcpToolBytes} bytes`);
  }
  if (inputSchema === undefined) throw new TypeError("it has no inputSchema");
  const idempotent = mayRunTwice(annotations ?? {});
  return { server, tool, description: said, parameters: schemaOf(inputSchema), idempotent };
}

const Text = z.string().optional().catch(undefined);
const Flag = z.boolean().optional().catch(undefined);
const Annotations = z.object({ title: Text, readOnlyHint: Flag, idempotentHint: Flag, destructiveHint: Flag });
const Beside = z.object({
  description: Text,
  title: Text,
  annotations: Annotations.optional().catch(undefined),
});

function schemaOf(inputSchema: unknown): JsonObject {
  try {
    return usableSchema(inputSchema, LIMITS.mcpToolBytes);
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new TypeError(`its inputSchema cannot be used: ${thrown.message}`);
  }
}

/** By the server's hints. Without hints a tool counts as repeatable, as everywhere. */
function mayRunTwice({ readOnlyHint, idempotentHint, destructiveHint }: z.infer<typeof Annotations>): boolean {
  if (readOnlyHint === true || idempotentHint === true) return true;
  return idempotentHint === undefined && destructiveHint !== true;
}

/** The names of these tools, in their order. */
function nameTools(tools: readonly Unnamed[], taken: readonly string[]): string[] {
  const shared = countOf([...taken, ...tools.map(({ tool }) => fitted(tool))]);
  const wanted = tools.map(({ server, tool }) =>
    (shared.get(fitted(tool)) ?? 0) > 1 ? fitted(`${server}_${tool}`) : fitted(tool),
  );
  const count = countOf([...taken, ...wanted]);
  const isOwn = (name: string) => name.length <= LONGEST_NAME && count.get(name) === 1;
  const given = new Set([...taken, ...wanted.filter(isOwn)]);
  return wanted.map((name, index) => {
    if (isOwn(name)) return name;
    const { server = "", tool = "" } = tools[index] ?? {};
    const hashed = withHash(name, server, tool, given);
    given.add(hashed);
    return hashed;
  });
}

/** Terminates: each attempt makes another name, and no more names are given than there are tools. */
function withHash(name: string, server: string, tool: string, given: ReadonlySet<string>): string {
  const beginning = name.slice(0, LONGEST_NAME - HASH_CHARACTERS - 1);
  for (let salt = 0; ; salt += 1) {
    const hash = seededWords("tool name", server, tool, salt)().toString(16).padStart(HASH_CHARACTERS, "0");
    const hashed = `${beginning}_${hash}`;
    if (!given.has(hashed)) return hashed;
  }
}

function countOf(names: readonly string[]): ReadonlyMap<string, number> {
  const count = new Map<string, number>();
  for (const name of names) count.set(name, (count.get(name) ?? 0) + 1);
  return count;
}

function fitted(name: string): string {
  return name.replaceAll(UNFIT, "_");
}

function cut(text: string): string {
  return shortText(text, REASON_CHARACTERS);
}
