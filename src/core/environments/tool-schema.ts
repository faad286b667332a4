/**
 * The JSON Schema a tool's arguments are advertised with, in the strict form that endpoints constrain decoding to:
 * closed objects, every parameter required, titles as pydantic writes them, defaults kept. A parameter that may be left
 * out takes null, which is how a model under a strict schema leaves it out.
 */
import * as z from "zod";

interface SchemaNode {
  readonly [key: string]: unknown;
}

/** Throws what zod throws for a type that has no JSON Schema (a date, a transform). */
export function toolSchema(name: string, parameters: z.ZodObject): SchemaNode {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(parameters, { io: "input" });
  const properties = Object.entries(schema.properties ?? {}).map(
    ([key, node]): [string, unknown] => {
      const property = typeof node === "object" ? node : {};
      return [key, { title: titleCase(key), ...propertySchema(property, parameters.shape[key]) }];
    },
  );
  return {
    ...schema,
    title: `${name}_args`,
    properties: Object.fromEntries(properties),
    required: properties.map(([key]) => key),
    additionalProperties: false,
  };
}

/** The arguments without the nulls that stand for "left out". */
export function dropOmitted(
  parameters: z.ZodObject,
  args: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const kept = Object.entries(args).filter(([key, value]) => {
    const parameter = parameters.shape[key];
    return value !== null || parameter === undefined || !mayBeLeftOut(parameter);
  });
  return Object.fromEntries(kept);
}

/** Optional or defaulted, and not asking for null itself. */
function mayBeLeftOut(parameter: z.core.$ZodType): boolean {
  return z.safeParse(parameter, undefined).success && !z.safeParse(parameter, null).success;
}

/** One property, its null (zod writes `type: ["string", "null"]`) as an alternative of its own, as pydantic writes it. */
function propertySchema(property: SchemaNode, parameter: z.core.$ZodType | undefined): SchemaNode {
  const types: unknown = property["type"];
  if (Array.isArray(types) && types.includes("null")) {
    const others: unknown[] = types.filter((type) => type !== "null");
    return orNull({ ...property, type: others.length === 1 ? others[0] : others });
  }
  const omissible = parameter !== undefined && mayBeLeftOut(parameter) && !("default" in property);
  return omissible ? orNull(property) : property;
}

function orNull({ description, default: fallback, ...type }: SchemaNode): SchemaNode {
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [type, { type: "null" }],
  };
}

function titleCase(name: string): string {
  return name
    .split("_")
    .filter((word) => word !== "")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join(" ");
}
