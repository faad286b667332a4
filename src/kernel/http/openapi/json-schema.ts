/** JSON Schemas of zod schemas, in the form of OpenAPI 3.1: a schema with an id is written once, under its name. */
import * as z from "zod";
import { isRecord } from "../../../contract/json.ts";

/** The keywords that zod writes and the reference page reads. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly prefixItems?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

export const SCHEMAS = "#/components/schemas/";

/**
 * Adapts schemas for generators of clients, which refuse more than OpenAPI does. zod omits the default of a field that
 * is parsed from text; the value is the same in both forms, so it is added. A default that is an object or a list goes
 * into the description, because generators have no literal for it. zod closes a tuple with `items: false`, which only
 * some readers understand, so its length is stated instead.
 */
function asReadersTakeIt({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}): void {
  const { def } = zodSchema._zod;
  if (def.type === "default") jsonSchema.default = def.defaultValue as typeof jsonSchema.default;
  const value = jsonSchema.default;
  if (typeof value === "object" && value !== null) {
    delete jsonSchema.default;
    const said = `default: ${JSON.stringify(value)}`;
    jsonSchema.description = [jsonSchema.description, said].filter(Boolean).join("; ");
  }
  if (def.type === "tuple" && jsonSchema.items === false) {
    delete jsonSchema.items;
    jsonSchema.minItems = def.items.length;
    jsonSchema.maxItems = def.items.length;
  }
}

export class SchemaCollection {
  /** By name: all schemas with an id that the requested schemas use. */
  readonly named: Record<string, JsonSchema> = {};
  readonly #namedWithExamples: Record<string, JsonSchema> = {};
  readonly #made = new Map<z.core.$ZodType, { readonly plain: JsonSchema; readonly withExamples: JsonSchema }>();

  /** The schema, or a reference if it has a name. Examples are given with the whole body, not in its schema. */
  of(schema: z.core.$ZodType): JsonSchema {
    return this.#madeOf(schema).plain;
  }

  /** The schema of a parameter, with its example. */
  ofParameter(schema: z.core.$ZodType): JsonSchema {
    return { ...this.of(schema), example: this.#madeOf(schema).withExamples.example };
  }

  /**
   * A value of the schema, made from the examples of its fields (`.meta({ example })`). For an object: the members that
   * are required or have an example. `given` replaces such values, and so does the example of a whole object; both name
   * only some members. Null if null is allowed and there is no example; otherwise the first branch, the first value of
   * an enumeration, the least number from 0, an empty list.
   */
  example<Schema extends z.ZodType>(schema: Schema, given?: unknown): z.input<Schema> {
    return this.#sample(this.#madeOf(schema).withExamples, given) as z.input<Schema>;
  }

  #sample(schema: JsonSchema, asked: unknown): unknown {
    const given = withExample(schema, asked);
    const { $ref, properties, items, additionalProperties } = schema;
    const branches = schema.anyOf ?? schema.oneOf;
    if ($ref !== undefined) return this.#sample(this.#referred($ref), given);
    if (given === undefined && branches?.some(({ type }) => type === "null")) return null;
    if (given !== undefined && (typeof given !== "object" || given === null)) return given;
    if (branches !== undefined) return this.#sample(branches.find((branch) => this.#fits(branch, given)) ?? {}, given);
    if (Array.isArray(given)) return items === undefined ? given : given.map((item) => this.#sample(items, item));
    if (properties !== undefined || typeof additionalProperties === "object") return this.#object(schema, { ...given });
    if (given !== undefined) return given;
    return plainest(schema);
  }

  #object(schema: JsonSchema, given: Readonly<Record<string, unknown>>): unknown {
    const { properties = {}, required = [], additionalProperties } = schema;
    const others = typeof additionalProperties === "object" ? additionalProperties : {};
    const named = Object.keys(properties).filter(
      (name) => required.includes(name) || name in given || properties[name]?.example !== undefined,
    );
    const names = [...new Set([...named, ...Object.keys(given)])];
    return Object.fromEntries(names.map((name) => [name, this.#sample(properties[name] ?? others, given[name])]));
  }

  /** Whether an object or a list belongs to this branch. */
  #fits(branch: JsonSchema, given: unknown): boolean {
    if (given === undefined) return true;
    const { $ref, items, properties } = branch;
    if ($ref !== undefined) return this.#fits(this.#referred($ref), given);
    if (Array.isArray(given)) return items !== undefined;
    const named = Object.entries(Object(given));
    return properties !== undefined && named.every(([name, value]) => (properties[name]?.const ?? value) === value);
  }

  #referred($ref: string): JsonSchema {
    return this.#namedWithExamples[$ref.slice(SCHEMAS.length)] ?? {};
  }

  #madeOf(schema: z.core.$ZodType) {
    const made = this.#made.get(schema) ?? this.#make(schema);
    this.#made.set(schema, made);
    return made;
  }

  #make(schema: z.core.$ZodType) {
    // `input` everywhere: fields with a default may be left out, and replies may get more fields later.
    const { $schema: _, ...made } = z.toJSONSchema(schema, { io: "input", override: asReadersTakeIt });
    const text = JSON.stringify(made).replaceAll('"#/$defs/', `"${SCHEMAS}`);
    const { $defs, ...withExamples }: Made = JSON.parse(text);
    Object.assign(this.#namedWithExamples, $defs);
    // None of our fields is called `example`.
    const { $defs: named, ...plain }: Made = JSON.parse(text, (name, value) =>
      name === "example" ? undefined : value,
    );
    Object.assign(this.named, named);
    return { plain, withExamples };
  }
}

function plainest({ const: only, enum: choices, type, minimum = 0 }: JsonSchema): unknown {
  if (Array.isArray(type) && type.includes("null")) return null;
  const least = Math.max(minimum, 0);
  const plain: Record<string, unknown> = { integer: least, number: least, boolean: false, array: [], string: "" };
  return only ?? choices?.[0] ?? plain[String(type)];
}

type Made = JsonSchema & { readonly $defs?: Record<string, JsonSchema> };

/** `given`, together with the members of the schema's own example. For a map of names, `given` is the whole value. */
function withExample({ example, properties, additionalProperties }: JsonSchema, given: unknown): unknown {
  const isMap = properties === undefined && typeof additionalProperties === "object";
  if (given === undefined) return example;
  return isRecord(example) && isRecord(given) && !isMap ? { ...example, ...given } : given;
}
