/**
 * The rules for deliveries: when to try, how to interpret an answer, and what to send. Pure; times are epoch
 * milliseconds.
 *
 * Invariants. A delivery is tried at most ten times over some 75 hours, always with the same id. Only 2xx is a success.
 * After a 410, nothing more is sent. A server that asks to wait (Retry-After) gets nothing until then, within bounds.
 */
import type { JsonObject } from "../contract/json.ts";
import { LIMITS } from "../contract/limits.ts";
import { seededRandom } from "../contract/random.ts";
import type { OutboundEvent } from "../kernel/kit/slice-hooks.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The delay before the first attempt, the second, and so on. */
const DELAYS_MS = [
  ...[0, 5000, 5 * MINUTE, 30 * MINUTE],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR),
] as const;
const JITTER = 0.1;
/** The most attempts of one delivery. */
export const ATTEMPTS = DELAYS_MS.length;

const THROTTLED = [429, 502, 503, 504];
const LONGEST_REST_MS = 24 * HOUR;
const SHORTEST_REST_MS = 1000;
/** If an event's body would be too long, only members up to this many characters are kept. */
const SHORT_MEMBER = 200;
const MEMBERS = 32;

/** The outcome of one attempt. `text`: the start of the answer. */
export type Answer =
  | { readonly status: number; readonly retryAfter: string | null; readonly text: string }
  | { readonly error: string };

export type Verdict =
  | { readonly kind: "delivered" }
  /** The server answered 410: it no longer accepts events. */
  | { readonly kind: "gone" }
  /** `rest_ms`: how long the server asked to wait. */
  | { readonly kind: "failed"; readonly why: string; readonly rest_ms: number | null };

/** The time of the attempt after `made` attempts; null: no more attempts. */
export function nextAttemptAt(id: string, made: number, now: number): number | null {
  const delay = DELAYS_MS[made];
  if (delay === undefined) return null;
  return Math.round(now + delay * (1 + JITTER * seededRandom("webhook", id, made)()));
}

export function verdictOf(answer: Answer, now: number): Verdict {
  if ("error" in answer) return { kind: "failed", why: answer.error, rest_ms: null };
  const { status, retryAfter } = answer;
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone" };
  const redirect = status >= 300 && status < 400 ? ": redirects are not followed" : "";
  const rest_ms = THROTTLED.includes(status) ? restOf(retryAfter, now) : null;
  return { kind: "failed", why: `answered ${status}${redirect}`, rest_ms };
}

/** Parses seconds or a date; null for anything else. */
function restOf(retryAfter: string | null, now: number): number | null {
  if (retryAfter === null) return null;
  const asked = /^\d{1,12}$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - now;
  return Number.isNaN(asked) ? null : Math.min(LONGEST_REST_MS, Math.max(SHORTEST_REST_MS, asked));
}

/** Whether the event filter `events` (null: all) includes this type. */
export function wants(events: readonly string[] | null, type: string): boolean {
  return events === null || events.some((name) => name === type || (name.endsWith(".*") && isIn(type, name)));
}

function isIn(type: string, family: string): boolean {
  return type.startsWith(family.slice(0, -1));
}

/**
 * The delivery id: the same for every repeat, different for each endpoint. Both ids consist of letters, digits and `_`.
 */
export function messageId(event: Pick<OutboundEvent, "id">, webhookId: string): string {
  return `msg_${tailOf(event.id)}_${tailOf(webhookId)}`;
}

function tailOf(id: string): string {
  return id.slice(id.indexOf("_") + 1);
}

/** The body, the same for every attempt. If it would be too long: ids and short members, with `thin: true`. */
export function bodyOf(event: OutboundEvent): string {
  const whole = JSON.stringify(envelopeOf(event, event.data));
  if (new TextEncoder().encode(whole).byteLength <= LIMITS.webhookBodyBytes) return whole;
  const short = Object.entries(event.data).filter(([, value]) => JSON.stringify(value).length <= SHORT_MEMBER);
  const rest = { ...Object.fromEntries(short.slice(0, MEMBERS)), thin: true, path: event.path ?? null };
  return JSON.stringify(envelopeOf(event, rest));
}

function envelopeOf({ id, type, at }: OutboundEvent, data: JsonObject) {
  const timestamp = new Date(at).toISOString();
  return { id, object: "event", type, timestamp, created_at: Math.floor(at / 1000), data };
}
