/** A JSON Schema as a table: one row for each field; fields of nested objects are below it, with their whole path. */
import { html } from "hono/html";
import { type JsonSchema, SCHEMAS } from "./json-schema.ts";

/** Values in the template are escaped, unless the template itself made them. */
export type Html = ReturnType<typeof html>;

export interface Field {
  readonly path: string;
  readonly schema: JsonSchema;
  readonly required: boolean;
}

export function schemaTable(schema: JsonSchema): Html {
  const branches = schema.oneOf ?? schema.anyOf;
  if (branches === undefined || schema.$ref !== undefined) return fieldTable(schema);
  return html`${branches.map((branch) => html`<p class="quiet">one of:</p>${fieldTable(branch)}`)}`;
}

function fieldTable(schema: JsonSchema): Html {
  const rows = fieldsOf(schema, "").map(
    ({ path, schema: field, required }) => html`<tr><td><code>${path}</code></td>
<td>${typeOf(field)}</td><td>${required ? "required" : ""}</td><td>${notesOf(field)}</td></tr>`,
  );
  if (rows.length === 0) return html`<p>${typeOf(schema)}</p>`;
  return html`<div class="table"><table><thead><tr><th>field</th><th>type</th><th></th><th></th></tr></thead>
<tbody>${rows}</tbody></table></div>`;
}

/** `prefix`: the path before the name of a field: "", "report.", "turns[].". */
export function fieldsOf(schema: JsonSchema, prefix: string): Field[] {
  const { properties = {}, required = [], items, additionalProperties } = schema;
  const branches = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const own = Object.entries(properties).flatMap(([name, member]) => {
    const field = { path: prefix + name, schema: member, required: required.includes(name) };
    return [field, ...fieldsOf(member, `${prefix}${name}.`)];
  });
  const listed = items === undefined ? [] : fieldsOf(items, prefix.replace(/\.$/, "[]."));
  const named = typeof additionalProperties === "object" ? fieldsOf(additionalProperties, `${prefix}*.`) : [];
  return [...own, ...listed, ...named, ...branches.flatMap((branch) => fieldsOf(branch, prefix))];
}

/** `string | null`, `Run[]`, `object of integer`. */
export function typeOf(schema: JsonSchema): Html {
  const { $ref, const: only, items, anyOf, oneOf, prefixItems, additionalProperties } = schema;
  if ($ref !== undefined) return linkTo($ref.slice(SCHEMAS.length));
  if (only !== undefined) return html`<code>${JSON.stringify(only)}</code>`;
  if (schema.enum !== undefined) return joined(schema.enum.map(asCode), " | ");
  const branches = anyOf ?? oneOf;
  if (branches !== undefined) return joined(branches.map(typeOf), " | ");
  if (prefixItems !== undefined) return html`[${joined(prefixItems.map(typeOf), ", ")}]`;
  if (items !== undefined) return isUnion(items) ? html`(${typeOf(items)})[]` : html`${typeOf(items)}[]`;
  if (typeof additionalProperties === "object" && Object.keys(additionalProperties).length > 0) {
    return html`object of ${typeOf(additionalProperties)}`;
  }
  return html`${[schema.type ?? "any"].flat().join(" | ")}`;
}

function isUnion({ $ref, type, enum: choices, anyOf, oneOf }: JsonSchema): boolean {
  if ($ref !== undefined) return false;
  return [choices, anyOf, oneOf, type].some((one) => Array.isArray(one) && one.length > 1);
}

/** Everything about a field except its type. The description of a parameter is outside its schema. */
export function notesOf(schema: JsonSchema, description = schema.description): Html {
  const { default: fallback } = schema;
  const notes = [
    ...(description === undefined ? [] : [html`${description}`]),
    ...boundsOf(schema).map((bound) => html`${bound}`),
    ...(fallback === undefined ? [] : [html`default ${asCode(fallback)}`]),
  ];
  return joined(notes, "; ");
}

function boundsOf({ minimum, maximum, maxLength, exclusiveMinimum }: JsonSchema): string[] {
  // zod writes the bounds of exact numbers on every integer; they do not help a reader.
  const least = minimum === undefined || minimum <= Number.MIN_SAFE_INTEGER ? null : minimum;
  const most = maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? null : maximum;
  const range = least !== null && most !== null ? [`${least} to ${most}`] : [];
  const atLeast = least !== null && most === null ? [`at least ${least}`] : [];
  const atMost = least === null && most !== null ? [`at most ${most}`] : [];
  const above = exclusiveMinimum === undefined ? [] : [`more than ${exclusiveMinimum}`];
  const long = maxLength === undefined ? [] : [`at most ${maxLength} characters`];
  return [...range, ...atLeast, ...above, ...atMost, ...long];
}

function linkTo(name: string): Html {
  return html`<a href="#schema-${name}">${name}</a>`;
}

function asCode(value: unknown): Html {
  return html`<code>${JSON.stringify(value)}</code>`;
}

function joined(pieces: readonly Html[], separator: string): Html {
  return html`${pieces.map((piece, index) => (index === 0 ? piece : html`${separator}${piece}`))}`;
}
