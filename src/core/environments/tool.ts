/** Tools: a name, a schema for what the model sends, and a function. Hidden arguments never reach the model. */
import * as z from "zod";
import { isRecord } from "../../contract/json.ts";
import type { ToolDefinition } from "../../contract/messages.ts";
import type { AnyTool, Awaitable, Call, Injected } from "./contract.ts";

export interface ToolSpec<P extends z.ZodObject, H extends Record<string, Injected<unknown>>> {
  readonly name: string;
  readonly description: string;
  readonly parameters: P;
  /** Arguments that `updateToolArgs` provides, each declared with `inject<Type>()`. */
  readonly hidden?: H;
  /** False when a second run would do harm; the default is true. */
  readonly idempotent?: boolean;
  readonly run: (args: z.infer<P> & { [K in keyof H]: H[K]["__inject"] }, call: Call) => Awaitable<unknown>;
}

/** Throws TypeError when a hidden argument is also a parameter. */
export function tool<P extends z.ZodObject, H extends Record<string, Injected<unknown>> = Record<never, never>>(
  spec: ToolSpec<P, H>,
): AnyTool {
  const hidden = Object.keys(spec.hidden ?? {});
  const both = hidden.find((name) => Object.hasOwn(spec.parameters.shape, name));
  if (both !== undefined) throw new TypeError(`tool ${spec.name}: ${both} is both hidden and a parameter`);
  return {
    name: spec.name,
    description: spec.description,
    // The schema tells the model that nothing else is taken; what it sends nevertheless is an error, not ignored.
    parameters: spec.parameters.strict(),
    hidden,
    idempotent: spec.idempotent ?? true,
    run: spec.run,
  };
}

/** Declares the type of a hidden argument; there is nothing behind it at run time. */
export function inject<T>(): Injected<T> {
  return {} as Injected<T>;
}

/** What is sent to the model. */
export function toolDefinition(tool: AnyTool): ToolDefinition {
  return {
    type: "function",
    function: {
      name: tool.name,
      description: tool.description,
      ...toolSchema(tool.name, tool.parameters),
    },
  };
}

/**
 * The JSON Schema a tool's arguments are advertised with. How they are read: tool-call.ts.
 *
 * Invariants. A strict schema is one that endpoints can constrain decoding to: every object in it is closed and
 * requires each of its properties, and no keyword in it is one they do not know. What may be left out takes null there,
 * which is how a model under such a schema leaves it out. A schema that cannot be written so goes out as it is, and not
 * as strict. Titles are written as pydantic writes them, defaults are kept, and an integer carries no bounds but its
 * author's. Sources: OpenAI, "Structured model outputs", supported schemas; the Agents SDK's
 * `ensure_strict_json_schema`, which verifiers uses.
 */
interface SchemaNode {
  readonly [key: string]: unknown;
}

/** What an endpoint is sent of a tool's parameters. */
export interface ToolSchema {
  readonly parameters: SchemaNode;
  readonly strict: boolean;
}

/** Marks, while a schema is written, what a model may leave out. */
const OMISSIBLE = "x-omissible";

/** Keywords whose members are schemas under names of the author's. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs"]);
/** Keywords that hold schemas, or a list of them. */
const INNER: ReadonlySet<string> = new Set([
  ...["items", "prefixItems", "additionalProperties", "propertyNames"],
  ...["anyOf", "oneOf", "allOf", "not"],
]);

const STRICT_KEYWORDS: ReadonlySet<string> = new Set([
  ...["$ref", "$defs", "type", "title", "description", "default", "enum", "const", OMISSIBLE],
  ...["properties", "required", "additionalProperties", "items", "anyOf", "oneOf"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "pattern", "format", "minItems", "maxItems"],
]);

const STRICT_FORMATS: ReadonlySet<unknown> = new Set([
  ...["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
]);

const LOOKAROUND = /\(\?<?[=!]/;

/** Throws what zod throws for a type that has no JSON Schema (a date). */
export function toolSchema(name: string, parameters: z.ZodObject): ToolSchema {
  const { $schema: _dialect, ...written } = z.toJSONSchema(parameters, {
    io: "input",
    // A bigint is an integer for a model, and for JSON.
    unrepresentable: ({ zodSchema }) => (zodSchema._zod.def.type === "bigint" ? { type: "integer" } : "throw"),
    // What stands within an optional one is written into the same node, its mark included.
    override: ({ zodSchema, jsonSchema: node }) => {
      if (mayBeLeftOut(zodSchema)) node[OMISSIBLE] = true;
      else delete node[OMISSIBLE];
    },
  });
  const schema = { ...eachNode(written, tidy), title: `${name}_args` };
  const strict = everyNode(schema, canBeStrict);
  return { parameters: eachNode(strict ? eachNode(schema, closeObject) : schema, removeMark), strict };
}

/** Optional or defaulted, and not asking for null itself. */
function mayBeLeftOut(parameter: z.core.$ZodType): boolean {
  return parameter._zod.optin === "optional" && !takesNull(parameter);
}

function takesNull(parameter: z.core.$ZodType): boolean {
  try {
    return z.safeParse(parameter, null).success;
  } catch {
    // An author's preprocessing or check that cannot do with null.
    return false;
  }
}

/** The schema with each of its nodes changed, the inner ones first. */
function eachNode(node: SchemaNode, change: (node: SchemaNode) => SchemaNode): SchemaNode {
  const inner = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inner);
    return isRecord(value) ? eachNode(value, change) : value;
  };
  const members = Object.entries(node).map(([keyword, value]) => {
    if (NAMED.has(keyword) && isRecord(value)) {
      const named = Object.entries(value).map(([name, schema]) => [name, inner(schema)]);
      return [keyword, Object.fromEntries(named)];
    }
    return [keyword, INNER.has(keyword) ? inner(value) : value];
  });
  return change(Object.fromEntries(members));
}

function everyNode(node: SchemaNode, holds: (node: SchemaNode) => boolean): boolean {
  let all = true;
  eachNode(node, (one) => {
    all &&= holds(one);
    return one;
  });
  return all;
}

/** As pydantic would write it. */
function tidy({ readOnly: _, ...node }: SchemaNode): SchemaNode {
  const { properties } = node;
  return {
    ...withoutSafeBounds(withNullApart(withLiteralType(node))),
    ...(isRecord(properties) && { properties: addTitles(properties) }),
  };
}

/** A reference is left without a title, which endpoints would take for a keyword beside it. */
function addTitles(properties: SchemaNode): SchemaNode {
  const members = Object.entries(properties).map(([name, node]) =>
    isRecord(node) && !("$ref" in node) ? [name, { title: titleCase(name), ...node }] : [name, node],
  );
  return Object.fromEntries(members);
}

/** zod writes the numbers that JavaScript can tell apart as bounds of every integer. */
function withoutSafeBounds(node: SchemaNode): SchemaNode {
  if (node["type"] !== "integer") return node;
  const { minimum, maximum, ...rest } = node;
  return {
    ...rest,
    ...(minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
  };
}

/** Whole numbers are integers; values of several types have a list of them. */
function withLiteralType(node: SchemaNode): SchemaNode {
  const values: unknown = "const" in node ? [node["const"]] : node["enum"];
  if (!Array.isArray(values) || values.length === 0) return node;
  const types = new Set(values.map(typeOf));
  if (types.has("number")) types.delete("integer");
  return { ...node, type: types.size === 1 ? [...types][0] : [...types] };
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Number.isInteger(value) ? "integer" : typeof value;
}

/** zod writes `type: ["string", "null"]` where pydantic writes an alternative. */
function withNullApart(node: SchemaNode): SchemaNode {
  const types: unknown = node["type"];
  if (!Array.isArray(types) || !types.includes("null") || "enum" in node) return node;
  const others: unknown[] = types.filter((type) => type !== "null");
  return orNull({ ...node, type: others.length === 1 ? others[0] : others });
}

function orNull({ title, description, default: fallback, ...type }: SchemaNode): SchemaNode {
  const { anyOf, ...rest } = removeMark(type);
  const others: unknown[] = Array.isArray(anyOf) && Object.keys(rest).length === 0 ? anyOf : [type];
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && { default: fallback }),
    anyOf: [...others, { type: "null" }],
  };
}

/** Whether endpoints could hold a model to this node, once it is closed. */
function canBeStrict(node: SchemaNode): boolean {
  const { type, items, format, pattern, additionalProperties: others } = node;
  if (!Object.keys(node).every((keyword) => STRICT_KEYWORDS.has(keyword))) return false;
  if (format !== undefined && !STRICT_FORMATS.has(format)) return false;
  if (typeof pattern === "string" && LOOKAROUND.test(pattern)) return false;
  if (others !== undefined && others !== false) return false;
  if (type === "array") return isRecord(items);
  return ["type", "anyOf", "oneOf", "$ref"].some((keyword) => keyword in node);
}

function closeObject({ $ref, oneOf, default: fallback, ...rest }: SchemaNode): SchemaNode {
  const node = { ...rest, ...(fallback != null && { default: fallback }) };
  // Beside a reference endpoints take no keyword, and of alternatives no count.
  if (oneOf !== undefined) return { ...node, anyOf: oneOf };
  if ($ref !== undefined) {
    return Object.keys(removeMark(node)).length === 0 ? { ...node, $ref } : { ...node, anyOf: [{ $ref }] };
  }
  if (rest["type"] !== "object") return node;
  const named = Object.entries(isRecord(rest["properties"]) ? rest["properties"] : {});
  return {
    ...node,
    properties: Object.fromEntries(named.map(([name, property]) => [name, presentOrNull(property)])),
    required: named.map(([name]) => name),
    additionalProperties: false,
  };
}

/** A property that is always there: one that may be left out can be null, unless it has a default. */
function presentOrNull(property: unknown): unknown {
  const leftOut = isRecord(property) && property[OMISSIBLE] === true && !("default" in property);
  return leftOut ? orNull(property) : property;
}

function removeMark({ [OMISSIBLE]: _, ...node }: SchemaNode): SchemaNode {
  return node;
}

function titleCase(name: string): string {
  return name
    .split("_")
    .filter((word) => word !== "")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join(" ");
}
