/** Tools: a name, a schema for the model's arguments, and a function. Hidden arguments are not shown to the model. */
import * as z from "zod";
import { isRecord } from "../../contract/json.ts";
import type { ToolDefinition } from "../../contract/messages.ts";
import type { AnyTool, Awaitable, Call, Injected } from "./contract.ts";

export interface ToolSpec<P extends z.ZodObject, H extends Record<string, Injected<unknown>>> {
  readonly name: string;
  readonly description: string;
  readonly parameters: P;
  /** Arguments provided by `updateToolArgs`, each declared with `inject<Type>()`. */
  readonly hidden?: H;
  /** False if a second run would do harm; the default is true. */
  readonly idempotent?: boolean;
  readonly run: (args: z.infer<P> & { [K in keyof H]: H[K]["__inject"] }, call: Call) => Awaitable<unknown>;
}

/** Throws TypeError if a hidden argument is also a parameter. */
export function tool<P extends z.ZodObject, H extends Record<string, Injected<unknown>> = Record<never, never>>(
  spec: ToolSpec<P, H>,
): AnyTool {
  const hidden = Object.keys(spec.hidden ?? {});
  const both = hidden.find((name) => Object.hasOwn(spec.parameters.shape, name));
  if (both !== undefined) throw new TypeError(`tool ${spec.name}: ${both} is both hidden and a parameter`);
  return {
    name: spec.name,
    description: spec.description,
    // The schema forbids other arguments; if the model sends one, it is an error and not ignored.
    parameters: spec.parameters.strict(),
    hidden,
    idempotent: spec.idempotent ?? true,
    run: spec.run,
  };
}

/** Declares the type of a hidden argument; it has no value at run time. */
export function inject<T>(): Injected<T> {
  return {} as Injected<T>;
}

/** The definition that is sent to the model. */
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
 * Makes the JSON Schema that advertises a tool's arguments. How arguments are parsed: tool-call.ts.
 *
 * Invariants. A strict schema is one to which endpoints can constrain decoding: every object in it is closed and
 * requires all its properties, and it has only keywords that they support. An optional property accepts null there,
 * which is how a model omits it under such a schema. A schema that cannot be made strict is sent as it is, not marked
 * strict. Titles are written as pydantic writes them, defaults are kept, and an integer has only its author's bounds.
 * Sources: OpenAI, "Structured model outputs", supported schemas; the Agents SDK's `ensure_strict_json_schema`, which
 * verifiers uses.
 */
interface SchemaNode {
  readonly [key: string]: unknown;
}

/** A tool's parameters as they are sent to an endpoint. */
export interface ToolSchema {
  readonly parameters: SchemaNode;
  readonly strict: boolean;
}

/** Marks, while a schema is made, what a model may omit. */
const OMISSIBLE = "x-omissible";

/** Keywords whose members are schemas under the author's names. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs"]);
/** Keywords that hold a schema, or a list of schemas. */
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

/** Throws zod's error for a type that has no JSON Schema (a date). */
export function toolSchema(name: string, parameters: z.ZodObject): ToolSchema {
  const { $schema: _dialect, ...written } = z.toJSONSchema(parameters, {
    io: "input",
    // A bigint is an integer for the model, and in JSON.
    unrepresentable: ({ zodSchema }) => (zodSchema._zod.def.type === "bigint" ? { type: "integer" } : "throw"),
    // The schema inside an optional one is written into the same node, including its mark.
    override: ({ zodSchema, jsonSchema: node }) => {
      if (mayBeLeftOut(zodSchema)) node[OMISSIBLE] = true;
      else delete node[OMISSIBLE];
    },
  });
  const schema = { ...eachNode(written, tidy), title: `${name}_args` };
  const strict = everyNode(schema, canBeStrict);
  return { parameters: eachNode(strict ? eachNode(schema, closeObject) : schema, removeMark), strict };
}

/** Whether a parameter is optional or has a default, and does not accept null itself. */
function mayBeLeftOut(parameter: z.core.$ZodType): boolean {
  return parameter._zod.optin === "optional" && !takesNull(parameter);
}

function takesNull(parameter: z.core.$ZodType): boolean {
  try {
    return z.safeParse(parameter, null).success;
  } catch {
    // An author's preprocessing or check throws for null.
    return false;
  }
}

/** The schema with a change applied to each of its nodes, inner nodes first. */
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

/** Rewrites a node as pydantic would write it. */
function tidy({ readOnly: _, ...node }: SchemaNode): SchemaNode {
  const { properties } = node;
  return {
    ...withoutSafeBounds(withNullApart(withLiteralType(node))),
    ...(isRecord(properties) && { properties: addTitles(properties) }),
  };
}

/** A reference gets no title, because endpoints would refuse a keyword next to it. */
function addTitles(properties: SchemaNode): SchemaNode {
  const members = Object.entries(properties).map(([name, node]) =>
    isRecord(node) && !("$ref" in node) ? [name, { title: titleCase(name), ...node }] : [name, node],
  );
  return Object.fromEntries(members);
}

/** zod gives every integer the bounds of JavaScript's safe integers; they are removed. */
function withoutSafeBounds(node: SchemaNode): SchemaNode {
  if (node["type"] !== "integer") return node;
  const { minimum, maximum, ...rest } = node;
  return {
    ...rest,
    ...(minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
  };
}

/** Whole numbers get the type integer; values of several types get a list of types. */
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

/** zod writes `type: ["string", "null"]`; pydantic writes alternatives. */
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

/** Whether endpoints could constrain a model to this node, once it is closed. */
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
  // Endpoints accept no keyword next to a reference, and no `oneOf`.
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

/** Makes an optional property required: it may be null instead, unless it has a default. */
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
