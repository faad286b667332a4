/**
 * Everything made from ROLLCALL_SECRET: the MAC that ids end in, the seal on endpoint keys and secrets, the hash that
 * requests are known again by, and the tokens of leases.
 * Each purpose has a key of its own, derived by HKDF, so that one never stands in for another.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { Scope } from "../../contract/scope.ts";
import type { Minting } from "../../core/ids.ts";
import type { EndpointRow } from "../../db/schema.ts";

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const MAC_CHARACTERS = 8;
const SEAL_KEY_ID = "k1";
const IV_BYTES = 12;

const derived = new Map<string, Buffer>();

/** Signs an id's text; the result is 8 base32 characters (40 bits). */
export function idMac(secret: string): (text: string) => string {
  const key = deriveKey(secret, "ids");
  return (text) => base32(createHmac("sha256", key).update(text).digest(), MAC_CHARACTERS);
}

/** AES-256-GCM. `context` is bound to the sealed text: a seal moved to another row does not open. */
export async function seal(secret: string, text: string, context: string): Promise<string> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const sealed = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv, additionalData: utf8(context) },
    await sealKey(secret),
    utf8(text),
  );
  return [SEAL_KEY_ID, base64(iv), base64(new Uint8Array(sealed))].join(".");
}

/** The sealed text, or an error when key, context or text do not belong together. */
export async function unseal(secret: string, sealed: string, context: string): Promise<string> {
  const [keyId, iv, text] = sealed.split(".");
  if (keyId !== SEAL_KEY_ID || iv === undefined || text === undefined) {
    throw new Error("the sealed key was written under a key id this deployment does not hold");
  }
  const opened = await crypto.subtle.decrypt(
    { name: "AES-GCM", iv: Buffer.from(iv, "base64"), additionalData: utf8(context) },
    await sealKey(secret),
    Buffer.from(text, "base64"),
  );
  return new TextDecoder().decode(opened);
}

/** What a seal is bound to: organisation, project and row. */
export function sealContext(scope: Scope, id: string): string {
  return `${scope.orgId}/${scope.projectId}/${id}`;
}

/** Of a request that may hold a secret: a plain hash would let one try out guesses. */
export function keyedHash(secret: string, text: string): string {
  return createHmac("sha256", deriveKey(secret, "requests")).update(text).digest("hex");
}

/** What a lease is proved by: made anew whenever it is asked, so it is kept nowhere. */
export function leaseToken(secret: string, leaseId: string): string {
  return createHmac("sha256", deriveKey(secret, "leases")).update(leaseId).digest("base64url");
}

export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Whether two texts are the same, without telling by its time how much of them is. */
export function isSameText(one: string, other: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

function sealKey(secret: string): Promise<CryptoKey> {
  const key = deriveKey(secret, "endpoint-keys");
  return crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
}

function deriveKey(secret: string, purpose: string): Buffer {
  if (!/^[0-9a-f]{64}$/.test(secret)) {
    throw new Error("ROLLCALL_SECRET must be 64 hex digits: wrangler secret put ROLLCALL_SECRET");
  }
  const name = `${secret}/${purpose}`;
  const known = derived.get(name);
  if (known !== undefined) return known;
  const key = Buffer.from(hkdfSync("sha256", Buffer.from(secret, "hex"), "", purpose, 32));
  derived.set(name, key);
  return key;
}

function base32(data: Uint8Array, characters: number): string {
  let word = 0;
  let bits = 0;
  let text = "";
  for (const byte of data) {
    word = ((word << 8) | byte) & 0xffff;
    bits += 8;
    while (bits >= 5 && text.length < characters) {
      bits -= 5;
      text += BASE32.charAt((word >> bits) & 31);
    }
  }
  return text;
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function base64(data: Uint8Array): string {
  return Buffer.from(data).toString("base64");
}

/** What making ids takes: a clock (`now` is epoch milliseconds), the runtime's randomness, and our keyed hash. */
export function minting(env: Env, now: number): Minting {
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  return { now, random, mac: idMac(env.ROLLCALL_SECRET) };
}

/** An endpoint's key as it is stored: sealed, beside what may be shown of it. */
export async function sealedKey(
  env: Env,
  scope: Scope,
  endpointId: string,
  key: string | null,
): Promise<Pick<EndpointRow, "sealed_key" | "api_key_last4">> {
  if (key === null) return { sealed_key: null, api_key_last4: null };
  const sealed_key = await seal(env.ROLLCALL_SECRET, key, sealContext(scope, endpointId));
  return { sealed_key, api_key_last4: last4Of(key) };
}

/** Enough to recognise a key by; nothing of one so short that four characters would give it away. */
function last4Of(key: string): string | null {
  return key.length < 12 ? null : key.slice(-4);
}
