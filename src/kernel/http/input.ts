/**
 * Reads what a caller sent: the body, the query, the idempotency key. Each function returns a parsed value or throws a
 * Refusal that names the field; no later code gets unparsed input.
 */
import * as z from "zod";
import { findOddity, type Json, type JsonObject } from "../../contract/json.ts";
import { LIMITS } from "../../contract/limits.ts";
import { findLost } from "../../contract/lost-json.ts";
import { mediaTypeOf } from "../../contract/media-type.ts";
import { holdsMore } from "../../core/schema/bounded-lists.ts";
import { BrokenBodyError, readToEnd, receivedChunks } from "../kit/body-chunks.ts";
import { PROCESS_SCHEDULER } from "../kit/fair-scheduler.ts";
import { FairSemaphore, type Reservation } from "../kit/fair-semaphore.ts";
import { isolateMemory } from "../kit/isolate-memory.ts";
import { Refusal, refusalOfIssues } from "./errors.ts";
import type { ApiContext } from "./operation.ts";
import { sharerOf } from "./strangers.ts";

/** The usual length of a column in databases. */
export const IdempotencyKey = z.string().regex(/^[ -~]{1,255}$/, {
  error: "must be 1 to 255 printable ASCII characters",
});

/** The parsed value; the issues that zod finds become one refusal. */
export function parseAs<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refusalOfIssues(parsed.error, value);
}

/** The query as an object. `metadata[branch]=main` becomes `{metadata: {branch: "main"}}`. */
export function queryOf(url: string): Record<string, string | Record<string, string>> {
  const plain: Record<string, string> = {};
  const groups: Record<string, Record<string, string>> = {};
  const seen = new Set<string>();
  for (const [name, value] of new URL(url).searchParams) {
    if (name.includes("__proto__")) throw notAName(name);
    // It is unclear which of the two was meant.
    if (seen.has(name)) throw refusedParameter(name, "is given more than once");
    seen.add(name);
    const [, group, key] = /^(\w+)\[(.+)\]$/.exec(name) ?? [];
    if (group !== undefined && key !== undefined) {
      groups[group] = { ...groups[group], [key]: value };
      continue;
    }
    // As a number it would be 0, but "after nothing" is not "after row 0".
    if (value === "") throw refusedParameter(name, "must not be empty: set a value or leave it out");
    plain[name] = value;
  }
  return { ...plain, ...groups };
}

function refusedParameter(param: string, why: string): Refusal {
  return new Refusal({ code: "invalid_request", message: `${param}: ${why}`, param });
}

/** A query parameter whose text is a JSON object. */
export function objectOf(text: string, param: string): JsonObject {
  const value = jsonOf(text, param);
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    const message = `${param}: must be a JSON object`;
    throw new Refusal({ code: "invalid_request", message, param });
  }
  refuseOddities(value, param);
  return value as JsonObject;
}

function jsonOf(text: string, param: string): Json {
  try {
    const value: Json = JSON.parse(text);
    refuseLost(text, value, param);
    return value;
  } catch (thrown) {
    if (thrown instanceof Refusal) throw thrown;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    const message = `${param}: is not valid JSON: ${unquoted(reason)}`;
    throw new Refusal({ code: "invalid_request", message, param });
  }
}

/** Refuses a number that would lose digits, and two members with the same name. */
function refuseLost(text: string, value: Json, name: string): void {
  const lost = findLost(text, value, name);
  if (lost === null) return;
  throw new Refusal({ code: "invalid_request", message: lost.message, param: lost.path === "" ? null : lost.path });
}

/**
 * The JSON body of a request, at most `LIMITS.requestBodyBytes` long, whatever its headers state. `parse`: replaces
 * `JSON.parse`, and throws a SyntaxError as it does.
 */
export async function readJson(context: ApiContext, parse?: (text: string) => Json): Promise<Json> {
  refuseOtherTypes(context.req.raw);
  const bytes = await readBytes(context.env, context.req.raw, sharerOf(context));
  await refuseWhoLostTheRight(context);
  // A small body is parsed at once.
  if (bytes.byteLength > FIRST_BYTES)
    await PROCESS_SCHEDULER.spend(sharerOf(context), bytes.byteLength * STEPS_PER_BYTE);
  return jsonBody(bytes, parse);
}

/** A body as JSON, checked as all bodies are. `parse` as in `readJson`. */
export function jsonBody(bytes: Uint8Array, parse?: (text: string) => Json): Json {
  return jsonOfBody(utf8Of(bytes), parse);
}

function jsonOfBody(text: string, parse?: (text: string) => Json): Json {
  const body = parseJson(text, parse ?? JSON.parse);
  if (holdsMore(body, LIMITS.valuesPerRequest)) {
    const advice = hasRows(body) ? ": upload rows as a dataset" : "";
    const message = `the body has more than ${LIMITS.valuesPerRequest} JSON values, the maximum${advice}`;
    throw new Refusal({ code: "invalid_request", message, param: null });
  }
  refuseOddities(body, "");
  if (parse === undefined) refuseLost(text, body, "");
  return body;
}

function hasRows(body: Json): boolean {
  if (body === null || typeof body !== "object") return false;
  return Object.entries(body).some(([name, value]) => name === "dataset" && Array.isArray(value));
}

/** The JSON of another protocol's client. Long numbers and repeated names are read as JavaScript reads them. */
export function jsonOfText(text: string): Json {
  return jsonOfBody(text, JSON.parse);
}

/** Receiving a body may take half an hour: the caller may have lost the permission meanwhile. */
async function refuseWhoLostTheRight(context: ApiContext): Promise<void> {
  const { stillAllowed }: Partial<ApiContext["var"]> = context.var;
  if (stillAllowed === undefined || (await stillAllowed())) return;
  const message = "this key lost its permission while the body was received";
  throw new Refusal({ code: "unauthorized", message, param: null });
}

/**
 * The body as text, exactly as it was sent, because its sender signed it. `org`: the organisation whose share of the
 * process it uses. `most`: bytes.
 */
export async function readText(
  env: Env,
  request: Request,
  org: string,
  most: number = LIMITS.requestBodyBytes,
): Promise<string> {
  refuseOtherTypes(request);
  const bytes = await readBytes(env, request, org, most);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refusal({ code: "invalid_request", message: "the body is not UTF-8 text", param: null });
  }
}

export function refuseOtherTypes(request: Request): void {
  if (mediaTypeOf(request.headers.get("content-type")) !== "application/json") {
    const message = "send the body as content-type: application/json";
    throw new Refusal({ code: "invalid_request", message, param: null }, { status: 415 });
  }
  refuseEncoded(request);
}

/** Compressed bodies are refused: how large one becomes is unknown before it is decompressed. */
export function refuseEncoded({ headers }: Request): void {
  const encoding = headers.get("content-encoding") ?? "";
  if (/^(identity)?$/i.test(encoding.trim())) return;
  const message = "send the body uncompressed, without content-encoding";
  throw new Refusal(
    { code: "invalid_request", message, param: null },
    { status: 415, headers: { "accept-encoding": "identity" } },
  );
}

function utf8Of(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    throw notJson("it is not UTF-8 text");
  }
}

function parseJson(text: string, parse: (text: string) => Json): Json {
  try {
    return parse(text);
  } catch (thrown) {
    throw notJson(thrown instanceof SyntaxError ? unquoted(thrown.message) : "it is nested too deeply");
  }
}

function notJson(reason: string): Refusal {
  const message = `the body is not valid JSON: ${reason}`;
  return new Refusal({ code: "invalid_request", message, param: null });
}

/** Removes the piece of the text that the parser quotes: it may contain a key, and errors are logged. */
function unquoted(reason: string): string {
  return reason.replace(/, (\.\.\.)?".*$/s, "");
}

function refuseOddities(value: Json, name: string): void {
  const found = findOddity(value, name);
  if (found === null) return;
  const { path, oddity, message } = found;
  if (oddity === "no_name") throw notAName(path);
  const code = "invalid_request";
  throw new Refusal({ code, message: `${path}: ${message}`, param: path });
}

function notAName(param: string): Refusal {
  return new Refusal({ code: "unknown_field", message: `${param}: is not a valid name`, param });
}

/** The request's `Idempotency-Key`, or null without one. */
export function idempotencyKeyOf(request: Request): string | null {
  return headerAs(IdempotencyKey, request, "Idempotency-Key");
}

/** A header, parsed by its schema; null without one. */
export function headerAs<Schema extends z.ZodType>(
  schema: Schema,
  { headers }: Request,
  name: string,
): z.output<Schema> | null {
  const value = headers.get(name);
  if (value === null) return null;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refusedParameter(name, parsed.error.issues[0]?.message ?? "invalid");
}

const SILENCE_MS = 2 * LIMITS.bodyPauseMs;
/**
 * Memory for the first bytes of bodies that are being received, shared between organisations. The rest of a body has
 * memory of the isolate. So small bodies, such as those of sign-ins, never wait for large work.
 */
const beginnings = new FairSemaphore(LIMITS.bodyBeginningsBytes, SILENCE_MS);
/** For parsing a body as JSON and checking it against its schema. */
const STEPS_PER_BYTE = 1;
/** Initial size of a body's buffer: most bodies are smaller. */
const FIRST_BYTES = 4096;

/** Counts the bytes that arrive: a chunked body states no length, and a stated length may be wrong. */
async function readBytes(
  env: Env,
  request: Request,
  org: string,
  most: number = LIMITS.requestBodyBytes,
): Promise<Uint8Array> {
  const stated = Number(request.headers.get("content-length") ?? most);
  if (stated > most) throw tooLarge(most);
  if (request.body === null) return new Uint8Array(0);
  const places: Reservation[] = [];
  const take = async (memory: FairSemaphore, bytes: number) => {
    const place = await memory.wait(org, LIMITS.bodyWaitMs, {}, bytes);
    if (place === null) throw tooManyBodies();
    places.push(place);
  };
  try {
    await take(beginnings, FIRST_BYTES);
    // A larger body takes all that it may need at once: bodies that wait for more would hold up each other.
    const rest = () => take(isolateMemory(env).bodies, stated > FIRST_BYTES ? stated : most);
    const stay = (now: number) => {
      for (const place of places) place.stay(now);
    };
    return await receive(request.body, most, { rest, stay });
  } catch (thrown) {
    throw thrown instanceof BrokenBodyError ? brokenBody(thrown) : thrown;
  } finally {
    for (const place of places) place.leave();
  }
}

interface BodyMemory {
  /** Resolves when there is memory for the rest of a body. */
  readonly rest: () => Promise<void>;
  readonly stay: (now: number) => void;
}

async function receive(body: ReadableStream<Uint8Array>, most: number, memory: BodyMemory): Promise<Uint8Array> {
  let bytes = new Uint8Array(FIRST_BYTES);
  let length = 0;
  for await (const chunk of receivedChunks(body)) {
    const after = length + chunk.byteLength;
    if (after > most) throw tooLarge(most);
    if (after > bytes.byteLength) {
      if (bytes.byteLength === FIRST_BYTES) await memory.rest();
      bytes = grown(bytes, after, most);
    }
    memory.stay(Date.now());
    bytes.set(chunk, length);
    length = after;
  }
  return bytes.subarray(0, length);
}

function grown(bytes: Uint8Array, least: number, most: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(Math.min(most, Math.max(2 * bytes.byteLength, least)));
  larger.set(bytes);
  return larger;
}

/** A body whose content-length is too large is refused before any of it is read. */
export function refuseLongerThan(request: Request, bytes: number, message: string): void {
  if (Number(request.headers.get("content-length") ?? 0) <= bytes) return;
  throw new Refusal({ code: "too_large", message, param: null });
}

/**
 * Answers a request with a body that `receive` reads itself. After a refusal the rest is read, at most `bytes`: its
 * sender does not read the answer before the whole body is sent.
 */
export async function readingToEnd(
  context: ApiContext,
  receive: (context: ApiContext) => Promise<Response>,
  bytes: number,
): Promise<Response> {
  const { body } = context.req.raw;
  try {
    return await receive(context);
  } catch (thrown) {
    if (body !== null && !body.locked) await readToEnd(body, bytes);
    throw thrown instanceof BrokenBodyError ? brokenBody(thrown) : thrown;
  }
}

/** The refusal for it: 408 if the body arrived too slowly. */
export function brokenBody({ message, slow }: BrokenBodyError): Refusal {
  return new Refusal({ code: "invalid_request", message, param: null }, slow ? { status: 408 } : {});
}

function tooManyBodies(): Refusal {
  const message = "too many request bodies are being received: try again later";
  return new Refusal({ code: "rate_limited", message, param: null });
}

function tooLarge(most: number): Refusal {
  return new Refusal({
    code: "too_large",
    message: `the body is over ${most} bytes`,
    param: null,
  });
}
