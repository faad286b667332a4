/**
 * Whether a delivery of a trigger's webhook comes from its sender, and the ids by which the same delivery is known when
 * it comes again. It reads the request, and stores and begins nothing.
 *
 * Invariants. Nothing of a delivery counts before this says that its sender is proved. Signatures and secrets are
 * compared in constant time. What proves the sender differs: Standard Webhooks signs id, time and body; GitHub the body
 * alone, so that one body is one delivery whatever its id; Hugging Face signs nothing, and sends the secret itself.
 */
import { parseKeepingNumbers } from "../contract/exact-json.ts";
import { canonicalJson, isRecord, type Json } from "../contract/json.ts";
import { holdsMore } from "../core/schema/bounded-lists.ts";
import { type GiveBack, stepsOfJson } from "../kernel/kit/fair-turns.ts";
import { isSameText, sha256Hex } from "../kernel/kit/secrets.ts";
import { verifyingKeys } from "../kernel/kit/signing-keys.ts";
import { type Refusal, type Result, refuse } from "../kernel/messages/refusal.ts";
import type { TriggerScheme } from "./wire.ts";

/** Seconds that a sender's clock and ours may differ by. */
export const SIGNED_S = 300;
/** Of one delivery: a sender that changes its secret signs with both. More are not looked at. */
const SIGNATURES = 16;
const ID = /^[\x21-\x7e]{1,255}$/;
const EVENT_CHARACTERS = 100;
/** JSON values from which the id of a commit is made, at most: a larger payload may nest too deep to be written. */
const VALUES_NAMING = 1000;
/** For each character of a body with numbers that no double holds. */
const READ_EXACTLY_STEPS = 20;
/** The scope of Hugging Face's events about what is in a repository. */
const CONTENT = "repo.content";

export interface Signed {
  /** Whichever of them was seen before, the delivery is that one again. */
  readonly ids: readonly [string, ...string[]];
  readonly event: string | null;
  /** The sender only looks whether anybody is there. */
  readonly ping: boolean;
  /** A number that a double does not keep is a raw one in it: nothing is wrong with a delivery that has such a number. */
  readonly payload: Json;
}

type Headers = { readonly get: (name: string) => string | null };

interface Received {
  readonly scheme: TriggerScheme;
  readonly secret: string;
  readonly headers: Headers;
  /** To the last character as it was sent. */
  readonly body: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Waits for the turn of the trigger's organisation, before the body of a proved sender is read. */
  readonly takeTurn?: () => Promise<GiveBack>;
}

/**
 * Refused: `invalid_signature`, `stale_timestamp`, or `invalid_request` where the sender is proved and what he sent is
 * no delivery.
 */
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
  // With a dot in the id it could not be told where the id ends in what is signed.
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
 * Hugging Face names no delivery. One about commits has an id made of the repository, the event and the commits. Null
 * for any other, and for one with more than `VALUES_NAMING` values in these: such a delivery is known by its whole
 * body.
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
  say: (payload: Json) => Omit<Signed, "payload">,
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
  const { event, ...known } = say(payload);
  return { ok: true, value: { ...known, payload, event: event?.slice(0, EVENT_CHARACTERS) ?? null } };
}

/** The text is hashed once for each key, however many signatures there are. */
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

/** Whether a refusal says that the sender is not proved now: an old signature may have been sent again by anybody. */
export function isUnsigned({ code }: Refusal): boolean {
  return code === "invalid_signature" || code === "stale_timestamp";
}
