/**
 * Verifies the sender of a trigger's delivery and derives the ids that identify repeats. Reads the request only; stores
 * and starts nothing.
 *
 * Invariants. Nothing of a delivery is used before its sender is verified. Signatures and secrets are compared in
 * constant time. The proof depends on the scheme. Standard Webhooks signs id, time and body. GitHub signs only the
 * body, so the same body is the same delivery, whatever its id. Hugging Face signs nothing and sends the secret itself.
 */
import { parseKeepingNumbers } from "../contract/exact-json.ts";
import { canonicalJson, isRecord, type Json } from "../contract/json.ts";
import { holdsMore } from "../core/schema/bounded-lists.ts";
import { type GiveBack, stepsOfJson } from "../kernel/kit/fair-scheduler.ts";
import { isSameText, sha256Hex } from "../kernel/kit/secrets.ts";
import { verifyingKeys } from "../kernel/kit/signing-keys.ts";
import { type Refusal, type Result, refuse } from "../kernel/messages/refusal.ts";
import type { TriggerScheme } from "./wire.ts";

/** The most seconds by which the sender's clock may differ from ours. */
export const SIGNED_S = 300;
/** The most signatures of one delivery that are checked: a sender that rotates its secret signs with both. */
const SIGNATURES = 16;
const ID = /^[\x21-\x7e]{1,255}$/;
const EVENT_CHARACTERS = 100;
/** The most JSON values used for the id of a commit: a larger payload may be nested too deeply. */
const VALUES_NAMING = 1000;
/** Steps for each character of a body with numbers that a double cannot represent. */
const READ_EXACTLY_STEPS = 20;
/** The scope of Hugging Face's events about repository content. */
const CONTENT = "repo.content";

export interface Signed {
  /** A delivery with any id that was seen before is a repeat. */
  readonly ids: readonly [string, ...string[]];
  readonly event: string | null;
  /** The sender only tests the address. */
  readonly ping: boolean;
  /** Numbers that a double cannot represent exactly are raw numbers in it: such a delivery is valid. */
  readonly payload: Json;
}

type Headers = { readonly get: (name: string) => string | null };

interface Received {
  readonly scheme: TriggerScheme;
  readonly secret: string;
  readonly headers: Headers;
  /** The body, exactly as sent. */
  readonly body: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Waits for the scheduling turn of the trigger's organisation before the body of a verified sender is parsed. */
  readonly takeTurn?: () => Promise<GiveBack>;
}

/** Refusals: `invalid_signature`, `stale_timestamp`, or `invalid_request` for a verified sender. */
export async function verifyDelivery(received: Received): Promise<Result<Signed>> {
  switch (received.scheme) {
    case "standard":
      return await standard(received);
    case "github":
      return await github(received);
    default:
      return await huggingface(received);
  }
}

async function standard(received: Received): Promise<Result<Signed>> {
  const { secret, headers, body, now } = received;
  const id = headers.get("webhook-id") ?? "";
  const timestamp = headers.get("webhook-timestamp") ?? "";
  const given = (headers.get("webhook-signature") ?? "").split(" ").slice(0, SIGNATURES);
  // With a dot in the id, the end of the id in the signed text would be ambiguous.
  if (!ID.test(id) || id.includes(".") || !/^\d{1,12}$/.test(timestamp)) {
    return unsigned("webhook-id or webhook-timestamp is missing or invalid");
  }
  const signatures = given.flatMap((one) => (one.startsWith("v1,") ? [Buffer.from(one.slice(3), "base64")] : []));
  const signed = await isSigned(verifyingKeys(secret), `${id}.${timestamp}.${body}`, signatures);
  if (!signed) return unsigned("no v1 signature in webhook-signature matches this id, time and body");
  if (Math.abs(now / 1000 - Number(timestamp)) > SIGNED_S) {
    return refuse("stale_timestamp", `it was signed more than ${SIGNED_S} s from now`, "webhook-timestamp");
  }
  return await read(received, (payload) => {
    const type = isRecord(payload) ? payload["type"] : null;
    return { ids: [id], event: typeof type === "string" ? type : null, ping: false };
  });
}

async function github(received: Received): Promise<Result<Signed>> {
  const { secret, headers, body } = received;
  const [, hex] = /^sha256=([0-9a-f]{64})$/.exec(headers.get("x-hub-signature-256") ?? "") ?? [];
  const signatures = hex === undefined ? [] : [Buffer.from(hex, "hex")];
  if (!(await isSigned([Buffer.from(secret, "utf8")], body, signatures))) {
    return unsigned("X-Hub-Signature-256 does not match the body");
  }
  const id = headers.get("x-github-delivery") ?? "";
  if (!ID.test(id)) return refuse("invalid_request", "X-GitHub-Delivery is missing or invalid", "X-GitHub-Delivery");
  const event = headers.get("x-github-event");
  return await read(received, () => ({ ids: [id, bodyId(body)], event, ping: event === "ping" }));
}

async function huggingface(received: Received): Promise<Result<Signed>> {
  const { secret, headers, body } = received;
  if (!isSameText(headers.get("x-webhook-secret") ?? "", secret)) {
    return unsigned("X-Webhook-Secret does not match");
  }
  return await read(received, (payload) => {
    const { scope, action } = isRecord(payload) && isRecord(payload["event"]) ? payload["event"] : {};
    const event = typeof scope === "string" && typeof action === "string" ? `${scope}.${action}` : null;
    return { ids: [commitId(payload) ?? bodyId(body)], event, ping: false };
  });
}

/**
 * Hugging Face sends no delivery id. For an event about commits, the id is derived from the repository, the event and
 * the commits. Null for other events, and for more than `VALUES_NAMING` values: then the whole body identifies it.
 */
function commitId(payload: Json): string | null {
  if (!isRecord(payload) || !isRecord(payload["event"]) || !isRecord(payload["repo"])) return null;
  const { event, repo, updatedRefs = null } = payload as { [name: string]: { [name: string]: Json } };
  const { id = null, name = null, type = null, headSha = null } = repo ?? {};
  if (typeof event?.["scope"] !== "string" || !event["scope"].startsWith(CONTENT)) return null;
  if (updatedRefs === null && headSha === null) return null;
  const said = {
    repo: { id, name, type, headSha },
    updatedRefs,
    scope: event["scope"],
    action: event["action"] ?? null,
  };
  if (holdsMore(said, VALUES_NAMING)) return null;
  return `hf_${sha256Hex(canonicalJson(said)).slice(0, 40)}`;
}

function bodyId(body: string): string {
  return `sha256_${sha256Hex(body)}`;
}

async function read(
  { body, takeTurn }: Received,
  signedPart: (payload: Json) => Omit<Signed, "payload">,
): Promise<Result<Signed>> {
  let steps = stepsOfJson(body);
  const giveBack = await takeTurn?.();
  let payload: Json;
  try {
    payload = parseKeepingNumbers(body, undefined, () => {
      steps += READ_EXACTLY_STEPS * body.length;
    }) as Json;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return refuse("invalid_request", "the body is not valid JSON", null);
  } finally {
    giveBack?.(steps);
  }
  const { event, ...known } = signedPart(payload);
  return { ok: true, value: { ...known, payload, event: event?.slice(0, EVENT_CHARACTERS) ?? null } };
}

/** Hashes the text once per key, however many signatures there are. */
async function isSigned(
  keys: readonly Uint8Array[],
  text: string,
  signatures: readonly Uint8Array[],
): Promise<boolean> {
  const data = new TextEncoder().encode(text);
  for (const secret of keys) {
    const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signature = Buffer.from(await crypto.subtle.sign("HMAC", key, data)).toString("base64");
    if (signatures.some((given) => isSameText(Buffer.from(given).toString("base64"), signature))) return true;
  }
  return false;
}

function unsigned(message: string): Result<never> {
  return refuse("invalid_signature", message, null);
}

/** Whether the sender is not verified. Also for an old signature, which anyone may have sent again. */
export function isUnsigned({ code }: Refusal): boolean {
  return code === "invalid_signature" || code === "stale_timestamp";
}
