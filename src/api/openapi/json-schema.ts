/** JSON Schemas of zod schemas, as OpenAPI 3.1 wants them: what has an id of its own stands once, under its name. */
import * as z from "zod";

/** What zod writes and the reference page reads. */
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
 * As generators of clients take it, which refuse more than OpenAPI does. zod leaves the default of what is read from a text
 * out; the value is the same in both forms. One that is an object or a list is said in the description: no generator has a
 * literal for it. And zod closes a tuple by `items: false`, for readers that know boolean schemas: its length says the same.
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
  /** By name: every schema with an id that one asked for is made of. */
  readonly named: Record<string, JsonSchema> = {};
  readonly #made = new Map<z.core.$ZodType, JsonSchema>();

  /** The schema, or a reference to it where it has a name. */
  of(schema: z.core.$ZodType): JsonSchema {
    const made = this.#made.get(schema) ?? this.#make(schema);
    this.#made.set(schema, made);
    return made;
  }

  #make(schema: z.core.$ZodType): JsonSchema {
    // `input` everywhere: fields with a default may be left out, and replies may gain fields later.
    const { $schema: _, ...made } = z.toJSONSchema(schema, {
      io: "input",
      override: asReadersTakeIt,
    });
    const text = JSON.stringify(made).replaceAll('"#/$defs/', `"${SCHEMAS}`);
    const { $defs, ...rest }: JsonSchema & { $defs?: Record<string, JsonSchema> } = JSON.parse(text);
    Object.assign(this.named, $defs);
    return rest;
  }
}
