/** Reads the fields of a request. Each error is a `FormError` that names its field. */
import * as z from "zod";
import type { JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { ContentPart } from "../../contract/messages.ts";
import { Sampling } from "../../contract/sampling.ts";
import { quotedText } from "../../contract/shown-text.ts";
import { formatPath } from "../../core/field-path.ts";
import { issueText } from "../../core/schema/issues.ts";
import { FormError } from "./form.ts";

export type Path = readonly PropertyKey[];
export type Fields = Readonly<Record<string, unknown>>;

export function refuse(path: Path, why: string): never {
  const param = formatPath(path);
  throw new FormError(`${param}: ${why}`, param);
}

/** The value as the schema has it. `path`: where the value is in the request. */
export function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, path: Path): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { message, param } = issueText(parsed.error, value);
  const place = formatPath(path);
  if (place === "") throw new FormError(message, param);
  if (param === null) throw new FormError(`${place}: ${message}`, place);
  const within = param.startsWith("[") ? place : `${place}.`;
  throw new FormError(within + message, within + param);
}

/** A list of at most so many items, which are parsed one by one. */
export function listOfAtMost(most: number) {
  return z.custom<readonly unknown[]>((value) => Array.isArray(value) && value.length <= most, {
    error: ({ input }) => listError(input, most, "must be a list"),
  });
}

/** The same, or a text. */
export function textOrListOfAtMost(most: number) {
  return z.custom<string | readonly unknown[]>(
    (value) => typeof value === "string" || (Array.isArray(value) && value.length <= most),
    { error: ({ input }) => listError(input, most, "must be a text or a list") },
  );
}

function listError(input: unknown, most: number, otherwise: string): string {
  if (input === undefined) return "is required";
  return Array.isArray(input) ? `has ${input.length} items, the maximum is ${most}` : otherwise;
}

export const CallMessages = listOfAtMost(LIMITS.callMessages);
export const CallTools = listOfAtMost(LIMITS.callTools);
export const CallParts = listOfAtMost(LIMITS.callParts);
export const TextOrParts = textOrListOfAtMost(LIMITS.callParts);

/** An object with a `type`: a part, a block, an item, or a tool. */
export const Typed = z.looseObject({ type: z.string() });
export const OptionalText = z.string().nullish();
export const OptionalFlag = z.boolean().nullish();

/** A word of a request, as an error may quote it. */
export function quoted(word: string): string {
  return JSON.stringify(quotedText(word, 60));
}

/** The object without members that are null or absent: agents write null for "not set". */
export function withoutNulls(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

/** The members with other names. */
export function otherFields(body: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.has(name)));
}

/** Fields of a request that came as JSON, as JSON. */
export function jsonFields(fields: Fields): JsonObject {
  return withoutNulls(fields) as JsonObject;
}

/** Fields of `Sampling` by their names there; all others go into `extra_body`. Nulls are left out. */
export function samplingOf(fields: Fields): Sampling {
  if (fields["extra_body"] !== undefined) {
    refuse(["extra_body"], "is not a field of the request: put its members beside messages and model");
  }
  const given = Object.entries(withoutNulls(fields));
  const named = given.filter(([name]) => Object.hasOwn(Sampling.shape, name));
  const others = given.filter(([name]) => !Object.hasOwn(Sampling.shape, name));
  const extra_body = others.length > 0 ? { extra_body: Object.fromEntries(others) } : {};
  const sampling = { ...Object.fromEntries(named), ...extra_body };
  const parsed = Sampling.safeParse(sampling);
  if (parsed.success) return parsed.data;
  const { message, param } = issueText(parsed.error, sampling);
  const short = (text: string) => text.replace(/^extra_body\.?/, "");
  throw new FormError(short(message), param === null ? null : short(param));
}

/** Content with one plain text is that text: agents write the same content in either form. */
export function contentOf(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const [only] = parts;
  const isText = parts.length === 1 && only?.type === "text" && Object.keys(only).length === 2;
  return isText && typeof only["text"] === "string" ? only["text"] : parts;
}
