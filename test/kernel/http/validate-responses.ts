/**
 * Checks every reply in tests against the OpenAPI document: its status, its content type, its body, every line and
 * every event of it. A member that the document does not name is a failure too, although a client would ignore it.
 */
import { dereference, type Schema, validate } from "@cfworker/json-schema";
import { EventReader } from "../../../src/contract/event-stream.ts";
import { type DocumentedReply, openApiOf } from "../../../src/kernel/http/openapi/openapi.ts";
import { OPERATIONS } from "../../../src/slices.ts";

type Ask = (path: string, init?: RequestInit) => Promise<Response>;

const DOCUMENT = openApiOf(OPERATIONS);
const DEFINITIONS: Schema = strict(JSON.parse(withLocalNames(DOCUMENT.components.schemas)));
/** Every place in the definitions by its URI, made once: finding them takes longer than checking a reply. */
const DEFINED: object = dereference({ $defs: DEFINITIONS });
/** The replies of a path or a method that does not exist. */
const REFUSED: DocumentedReply = {
  description: "refused before any operation",
  headers: {},
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
};
type Check = (value: unknown) => ReturnType<typeof validate>;
const checks = new Map<unknown, Check>();
const TEMPLATES = Object.keys(DOCUMENT.paths).map((template) => {
  const pattern = new RegExp(`^${template.replaceAll(".", "[.]").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
  return { template, pattern };
});

export function checked(ask: Ask): Ask {
  return async (path, init = {}) => {
    const reply = await ask(path, init);
    const method = (init.method ?? "GET").toLowerCase();
    return await checkReply(method, new URL(path, "http://x").pathname, reply);
  };
}

/**
 * The same reply, to be read once more; throws if the document does not describe it. A stream throws while it is read.
 */
export async function checkReply(method: string, path: string, reply: Response): Promise<Response> {
  const where = `${method.toUpperCase()} ${path} ${reply.status}`;
  if ((reply.headers.get("x-request-id") ?? "") === "") throw new Error(`${where}: no x-request-id`);
  const { content } = documented(method, path, reply.status, where);
  if (content === undefined) return checkEmpty(reply, where);
  const type = reply.headers.get("content-type")?.split(";")[0] ?? "none";
  const media = content[type];
  if (media === undefined) throw new Error(`${where}: ${type} is not documented`);
  const check = (value: unknown) => hold(media.schema, value, where);
  if (type === "text/event-stream") return checkEvents(reply, check);
  const bytes = await reply.arrayBuffer();
  const text = new TextDecoder().decode(bytes);
  if (/^application\/(?:.+\+)?json$/.test(type)) check(JSON.parse(text));
  else if (type === "application/jsonl") for (const line of linesOf(text, where)) check(JSON.parse(line));
  else check(text);
  return new Response(bytes, { status: reply.status, headers: reply.headers });
}

function documented(method: string, path: string, status: number, where: string): DocumentedReply {
  const template = TEMPLATES.find(({ pattern }) => pattern.test(path))?.template;
  const operation = DOCUMENT.paths[template ?? ""]?.[method];
  const unknown = template === undefined ? 404 : 405;
  const reply = operation === undefined ? REFUSED : operation.responses[status];
  if (reply === undefined || (operation === undefined && status !== unknown)) {
    throw new Error(`${where}: this status is not documented`);
  }
  return reply;
}

async function checkEmpty(reply: Response, where: string): Promise<Response> {
  const { byteLength } = await reply.arrayBuffer();
  if (byteLength > 0) throw new Error(`${where}: ${byteLength} bytes where none are documented`);
  return new Response(null, { status: reply.status, headers: reply.headers });
}

function linesOf(text: string, where: string): string[] {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error(`${where}: the last line has no end`);
  return lines;
}

/** Reads only when the test does, because a stream may have no end. */
function checkEvents(reply: Response, check: (event: unknown) => void): Response {
  const { body, status, headers } = reply;
  if (body === null) throw new Error("an event stream without a body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  const bytes = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done && rest !== "") throw new Error(`the stream ends within an event: ${rest}`);
        if (done) return controller.close();
        const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = frames.pop() ?? "";
        const text = frames.map((frame) => `${frame}\n\n`).join("");
        for (const { id, name, data } of new EventReader().push(text)) {
          if (data !== "") check({ id: Number(id), event: name, data: JSON.parse(data) });
        }
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(bytes, { status, headers });
}

function hold(schema: object, value: unknown, where: string): void {
  const check = checks.get(schema) ?? checkOf(schema);
  checks.set(schema, check);
  const { valid, errors } = check(value);
  if (valid) return;
  const all = errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
  const body = JSON.stringify(value).slice(0, 2000);
  throw new Error(`${where}: not as documented\n${all.join("\n")}\n${body}`);
}

function checkOf(schema: object): Check {
  const own: Schema = strict(JSON.parse(withLocalNames(schema)));
  const places = Object.setPrototypeOf(dereference(own), DEFINED);
  return (value) => validate(value, own, "2020-12", places, false);
}

function withLocalNames(schema: object): string {
  return JSON.stringify(schema).replaceAll("#/components/schemas/", "#/$defs/");
}

/** The schema with every object closed that does not say otherwise. */
function strict(schema: Schema): Schema {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(strict);
  const inner = Object.entries(schema).map(([name, member]) => [name, strict(member)]);
  const closed = schema["type"] === "object" && typeof schema["properties"] === "object";
  return { ...(closed && { additionalProperties: false }), ...Object.fromEntries(inner) };
}
