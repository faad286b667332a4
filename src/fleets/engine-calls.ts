/**
 * How an engine of a fleet is reached: one request, and whether it arrived. The data side is what samples, up to /v1;
 * the control side is the server's root, where weights are changed, and may be another address.
 *
 * Invariants. Never throws. Follows no redirect. Ends with its signal, reads no more than it was told. No message holds
 * a key. `unreached` is said only where surely no byte of the request left.
 */

import { LIMITS } from "../contract/limits.ts";
import { beginningOf, LongBodyError, wholeText } from "../kernel/clients/bounded-body.ts";
import { AddressRefused, type Send } from "../kernel/clients/outgoing.ts";
import { parsedJson, saidIn, shortly } from "../kernel/clients/reply-words.ts";

/** One engine, with its keys opened. */
export interface Engine {
  /** As messages name it. */
  readonly name: string;
  /** Up to and including /v1. */
  readonly base_url: string;
  readonly api_key: string | null;
  /** Its root, without /v1; null: the server of `base_url`. */
  readonly control_url: string | null;
  /** Null: `api_key`. */
  readonly control_key: string | null;
  readonly send: Send;
}

/** What became of one thing that an engine was asked to do. */
export type EngineReply =
  | { readonly kind: "done" }
  /** It answered that it will not: nothing of it has changed. */
  | { readonly kind: "refused"; readonly message: string }
  /** Nothing arrived. */
  | { readonly kind: "unreached"; readonly message: string }
  /** It may have done all of it, a part or nothing. */
  | { readonly kind: "unknown"; readonly message: string };

export interface EngineRequest {
  readonly side: "data" | "control";
  readonly method: "GET" | "POST";
  /** Of the data side without /v1; may hold a query. */
  readonly path: string;
  readonly body?: object;
  readonly signal: AbortSignal;
  /** True: the beginning of a long reply is enough. */
  readonly beginning?: boolean;
}

export interface EngineAnswer {
  readonly kind: "answered";
  readonly status: number;
  readonly text: string;
  /** Parsed; null when it is no JSON. */
  readonly body: unknown;
  /** What it says went wrong; empty when it says nothing. */
  readonly said: string;
}

/** Nobody listens there, or nobody knows the name: no request has left. */
const NO_CONNECTION = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH", "ERR_INVALID_URL"];
const NOT_THERE = [404, 405];

export async function askEngine(
  engine: Engine,
  request: EngineRequest,
): Promise<EngineAnswer | Exclude<EngineReply, { kind: "done" | "refused" }>> {
  const { method, body, signal } = request;
  const key = keyOf(engine, request.side);
  try {
    const reply = await engine.send(new URL(addressOf(engine, request)), {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    });
    const read = request.beginning === true ? beginningOf : wholeText;
    const text = await read(reply, LIMITS.completionBytes);
    const parsed = parsedJson(text);
    return { kind: "answered", status: reply.status, text, body: parsed, said: saidIn(parsed, key) };
  } catch (thrown) {
    const why = signal.aborted ? "no answer in time" : whyNot(thrown, key);
    const kind = hasNotLeft(thrown) ? "unreached" : "unknown";
    return { kind, message: `${engine.name}: ${method} ${pathOf(request)}: ${why}` };
  }
}

/** A reply with what it was read from, where the engine answered. */
export type Told = EngineReply & { readonly status?: number; readonly said?: string };

export function plainReply(reply: Told): EngineReply {
  return reply.kind === "done" ? { kind: "done" } : { kind: reply.kind, message: reply.message };
}

/** A request that changes something, and what its answer means for that. */
export async function tellEngine(engine: Engine, request: Omit<EngineRequest, "side" | "method">): Promise<Told> {
  const answer = await askEngine(engine, { ...request, side: "control", method: "POST" });
  if (answer.kind !== "answered") return answer;
  const { status, said } = answer;
  if (status >= 200 && status < 300) return { kind: "done", status };
  const message = refusalOf(engine, `POST ${pathOf(request)}`, answer);
  // A 5xx may come after half of it.
  return { kind: status >= 500 ? "unknown" : "refused", message, status, said };
}

/** Whether it has no such route. */
export function isMissing({ status, said }: { readonly status?: number; readonly said?: string }): boolean {
  if (status === undefined || !NOT_THERE.includes(status)) return false;
  // A route of its own that finds no adapter answers 404 in other words.
  return said === undefined || said === "" || /^(not found|method not allowed)\.?$/i.test(said);
}

/** In words: which route of which replica answered what. */
export function refusalOf({ name }: Engine, route: string, answer: Pick<EngineAnswer, "status" | "said">): string {
  const after = answer.said === "" ? "" : `: ${answer.said}`;
  const elsewhere = answer.status >= 300 && answer.status < 400 ? ": it redirects" : "";
  return `${name}: ${route} answered ${answer.status}${elsewhere}${after}`;
}

function keyOf({ api_key, control_key }: Engine, side: EngineRequest["side"]): string | null {
  return side === "data" ? api_key : (control_key ?? api_key);
}

function addressOf({ base_url, control_url }: Engine, { side, path }: EngineRequest): string {
  const base = base_url.replace(/\/+$/, "");
  if (side === "data") return base + path;
  const root = (control_url ?? base).replace(/\/+$/, "").replace(/\/v1$/, "");
  return root + path;
}

function pathOf({ path }: Pick<EngineRequest, "path">): string {
  return path.replace(/\?.*$/, "");
}

function hasNotLeft(thrown: unknown): boolean {
  if (thrown instanceof AddressRefused) return true;
  return [thrown, thrown instanceof Error ? thrown.cause : undefined].some(
    (error) => error instanceof Error && "code" in error && NO_CONNECTION.includes(String(error.code)),
  );
}

function whyNot(thrown: unknown, key: string | null): string {
  if (thrown instanceof LongBodyError) return "the answer is over 4 MiB";
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? ` (${thrown.cause.message})` : "";
  const said = shortly(thrown instanceof Error ? thrown.message + cause : String(thrown), key);
  // The runtime says no more than this of a name that no resolver knows.
  return said.startsWith("internal error") ? "the host is unknown or unreachable" : said;
}
