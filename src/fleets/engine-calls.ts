/**
 * Sends one request to an engine of a fleet and reports whether it arrived. The data side samples; its address ends
 * with /v1. The control side changes weights; it is the server's root and may be another address.
 *
 * Invariants. Never throws. Follows no redirect. Stops when its signal aborts, and reads no more than the given limit.
 * No message contains a key. `unreached` is returned only if certainly no byte of the request was sent.
 */

import { LIMITS } from "../contract/limits.ts";
import { LongBodyError, parsedReply } from "../kernel/clients/bounded-body.ts";
import { AddressRefused, type Send } from "../kernel/clients/outgoing.ts";
import type { ReplyReservation } from "../kernel/clients/reply-reservation.ts";
import { parsedJson, quotedWords, shortly } from "../kernel/clients/reply-words.ts";

/** One engine, with its decrypted keys. */
export interface Engine {
  /** Its name in messages. */
  readonly name: string;
  /** Ends with /v1. */
  readonly base_url: string;
  readonly api_key: string | null;
  /** Its root, without /v1. Null: the server of `base_url`. */
  readonly control_url: string | null;
  /** Null: `api_key`. */
  readonly control_key: string | null;
  readonly send: Send;
  /** Memory and computing time of its organisation, for one reply. */
  readonly openReservation?: (() => ReplyReservation) | undefined;
}

/** The outcome of a request that changes an engine. */
export type EngineReply =
  | { readonly kind: "done" }
  /** The engine refused it: nothing has changed. */
  | { readonly kind: "refused"; readonly message: string }
  /** The request was not sent. */
  | { readonly kind: "unreached"; readonly message: string }
  /** The engine may have done all of it, a part of it or nothing. */
  | { readonly kind: "unknown"; readonly message: string };

export interface EngineRequest {
  readonly side: "data" | "control";
  readonly method: "GET" | "POST";
  /** Without /v1 on the data side; may contain a query. */
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
  /** The parsed JSON; null if the text is not JSON. */
  readonly body: unknown;
  /** The error message in the answer; empty if there is none. */
  readonly said: string;
}

/** The host does not listen or its name is unknown: no request was sent. */
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
    const whole = request.beginning !== true;
    const bounds = { bytes: LIMITS.completionBytes, whole, signal, openReservation: engine.openReservation };
    return await parsedReply(reply, bounds, (text) => {
      const parsed = parsedJson(text);
      return { kind: "answered" as const, status: reply.status, text, body: parsed, said: quotedWords(parsed, key) };
    });
  } catch (thrown) {
    const why = signal.aborted ? "no answer in time" : whyNot(thrown, key);
    const kind = hasNotLeft(thrown) ? "unreached" : "unknown";
    return { kind, message: `${engine.name}: ${method} ${pathOf(request)}: ${why}` };
  }
}

/** A reply, with the status and message of the engine if it answered. */
export type FullReply = EngineReply & { readonly status?: number; readonly said?: string };

export function plainReply(reply: FullReply): EngineReply {
  return reply.kind === "done" ? { kind: "done" } : { kind: reply.kind, message: reply.message };
}

/** Sends a request that changes something, and interprets the answer. */
export async function sendToEngine(
  engine: Engine,
  request: Omit<EngineRequest, "side" | "method">,
): Promise<FullReply> {
  const answer = await askEngine(engine, { ...request, side: "control", method: "POST" });
  if (answer.kind !== "answered") return answer;
  const { status, said } = answer;
  if (status >= 200 && status < 300) return { kind: "done", status };
  const message = refusalOf(engine, `POST ${pathOf(request)}`, answer);
  // With a 5xx, part of the change may have been made.
  return { kind: status >= 500 ? "unknown" : "refused", message, status, said };
}

/** Whether the engine does not have this route. */
export function isMissing({ status, said }: { readonly status?: number; readonly said?: string }): boolean {
  if (status === undefined || !NOT_THERE.includes(status)) return false;
  // If the route exists but finds no adapter, it also answers 404, with another message.
  return said === undefined || said === "" || /^(not found|method not allowed)\.?$/i.test(said);
}

/** A message that names the replica, the route and the answer. */
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
  // This is the runtime's only message for a host name that does not resolve.
  return said.startsWith("internal error") ? "the host is unknown or unreachable" : said;
}
