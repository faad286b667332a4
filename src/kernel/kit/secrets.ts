/**
 * Everything derived from ROLLCALL_SECRET: the MAC at the end of ids, the seals of endpoint keys and secrets, the
 * hashes that identify repeated requests, and the tokens of leases.
 *
 * Invariants. Each purpose has its own key, derived by HKDF, so that one never replaces another. New values are made
 * under the current secret; values made under one of ROLLCALL_SECRETS_BEFORE are still accepted. Everything inside a
 * run is made under the secret of the run's id, so it stays the same if the secret changes during the run.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { messageOf } from "../../contract/errors.ts";
import type { Scope } from "../../contract/scope.ts";
import {
  databaseNumberIn,
  type Mac,
  type Minting,
  type ParsedId,
  parseId,
  type TokenKind,
  tokenKind,
} from "../../core/ids.ts";
import type { HashedToken } from "../db/database.ts";
import type { EndpointRow } from "../db/schema.ts";

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";
const MAC_CHARACTERS = 8;
const SEAL_KEY_ID_CHARACTERS = 8;
const IV_BYTES = 12;
const SECRET = /^[0-9a-f]{64}$/;
const MOST_BEFORE = 4;

const derived = new Map<string, Buffer>();

/** The part of Env that has a deployment's secrets. */
export type SecretsEnv = Pick<Env, "ROLLCALL_SECRET" | "ROLLCALL_SECRETS_BEFORE">;

/** The current secret, then the earlier ones. New values use the current one. Throws if one of them is malformed. */
function secretsOf({ ROLLCALL_SECRET: current, ROLLCALL_SECRETS_BEFORE = "" }: SecretsEnv): [string, ...string[]] {
  if (!SECRET.test(current)) {
    throw new Error("ROLLCALL_SECRET must be 64 hex digits: wrangler secret put ROLLCALL_SECRET");
  }
  const before = ROLLCALL_SECRETS_BEFORE.split(/[\s,]+/).filter((text) => text !== "");
  if (before.length > MOST_BEFORE || !before.every((secret) => SECRET.test(secret))) {
    throw new Error(
      `ROLLCALL_SECRETS_BEFORE must be at most ${MOST_BEFORE} secrets of 64 hex digits, separated by commas: ` +
        "wrangler secret put ROLLCALL_SECRETS_BEFORE",
    );
  }
  // Between the steps of a rotation, the current secret may be in the list of earlier ones too.
  return [current, ...before.filter((secret) => secret !== current)];
}

/** What is wrong with the secrets; null if they are valid. Contains nothing of them. */
export function secretsProblem(env: SecretsEnv): string | null {
  try {
    secretsOf(env);
    return null;
  } catch (thrown) {
    return messageOf(thrown);
  }
}

/** The meaning of an id that this deployment minted, under any of its secrets; null for any other text. */
export function readId(env: SecretsEnv, text: string): ParsedId | null {
  return firstOf(env, (secret) => parseId(text, idMac(secret)));
}

/** The kind of a token that this deployment minted, under any of its secrets; null for any other text. */
export function readTokenKind(env: SecretsEnv, token: string): TokenKind | null {
  return firstOf(env, (secret) => tokenKind(token, idMac(secret)));
}

function firstOf<T>(env: SecretsEnv, read: (secret: string) => T | null): T | null {
  for (const secret of secretsOf(env)) {
    const found = read(secret);
    if (found !== null) return found;
  }
  return null;
}

/** Signs ids inside a run. Throws if the run was minted under a secret that is gone. */
export function macWithin(env: SecretsEnv, runId: string): Mac {
  return idMac(secretOfRun(env, runId));
}

/** The secret that the run's id was minted under. */
function secretOfRun(env: SecretsEnv, runId: string): string {
  const secret = secretsOf(env).find((one) => parseId(runId, idMac(one))?.kind === "run");
  if (secret !== undefined) return secret;
  throw new Error(
    `${runId} was created under a ROLLCALL_SECRET that this deployment does not have: add that to ROLLCALL_SECRETS_BEFORE`,
  );
}

/** Signs an id's text; the result is 8 base32 characters (40 bits). */
export function idMac(secret: string): (text: string) => string {
  const key = deriveKey(secret, "ids");
  return (text) => base32(createHmac("sha256", key).update(text).digest(), MAC_CHARACTERS);
}

/** AES-256-GCM. `context` is bound to the sealed text: a seal moved to another row does not open. */
export async function seal(env: SecretsEnv, text: string, context: string): Promise<string> {
  const [secret] = secretsOf(env);
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const sealed = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv, additionalData: utf8(context) },
    await sealKey(secret),
    utf8(text),
  );
  return [sealKeyId(secret), base64(iv), base64(new Uint8Array(sealed))].join(".");
}

/** The plain text. Throws if key, context or text do not belong together. */
export async function unseal(env: SecretsEnv, sealed: string, context: string): Promise<string> {
  const [keyId, iv, text] = sealed.split(".");
  const secret = secretsOf(env).find((one) => sealKeyId(one) === keyId);
  if (secret === undefined || iv === undefined || text === undefined) {
    throw new Error(
      `it was sealed under a ROLLCALL_SECRET (key ${keyId}) that this deployment does not have: ` +
        "add that to ROLLCALL_SECRETS_BEFORE, or set the value again",
    );
  }
  const opened = await crypto.subtle.decrypt(
    { name: "AES-GCM", iv: Buffer.from(iv, "base64"), additionalData: utf8(context) },
    await sealKey(secret),
    Buffer.from(text, "base64"),
  );
  return new TextDecoder().decode(opened);
}

/** The prefixes of seals, up to a dot: that of the current secret first, then those of earlier ones. */
export function sealKeyIds(env: SecretsEnv): [current: string, ...before: string[]] {
  const [current, ...before] = secretsOf(env);
  return [sealKeyId(current), ...before.map(sealKeyId)];
}

/** Identifies a secret without revealing anything about it. */
function sealKeyId(secret: string): string {
  return deriveKey(secret, "seal-key-id").toString("hex").slice(0, SEAL_KEY_ID_CHARACTERS);
}

/** What a seal is bound to: organisation, project and row. */
export function sealContext(scope: Scope, id: string): string {
  return `${scope.orgId}/${scope.projectId}/${id}`;
}

/**
 * Hashes of a request that may hold a secret. They are keyed, because a plain hash would let an attacker test guesses.
 * The first is the one to store; the others are what the same request was stored as under earlier secrets.
 */
export function keyedHashes(env: SecretsEnv, text: string): [current: string, ...before: string[]] {
  const [current, ...before] = secretsOf(env);
  const hash = (secret: string) => createHmac("sha256", deriveKey(secret, "requests")).update(text).digest("hex");
  return [hash(current), ...before.map(hash)];
}

/** The token that proves a lease of the run. It is computed whenever it is needed, so it is not stored. */
export function leaseToken(env: SecretsEnv, runId: string, leaseId: string): string {
  const key = deriveKey(secretOfRun(env, runId), "leases");
  return createHmac("sha256", key).update(leaseId).digest("base64url");
}

/** What the key of an agent's rollout stands for. */
export interface RolloutAccess {
  readonly scope: Scope;
  readonly run_id: string;
  readonly rollout_id: string;
  /** The number of the rollout's shard. */
  readonly host: number;
  readonly lease: number;
}

const ROLLOUT_KEY = /^rkm_([\w-]{1,600})\.([\w-]{43})$/;

/** The key with which an agent plays one rollout under one lease. It is computed, so it is not stored. */
export function rolloutKey(env: SecretsEnv, { scope, run_id, rollout_id, host, lease }: RolloutAccess): string {
  const named = Buffer.from(JSON.stringify([scope.orgId, scope.projectId, rollout_id, host, lease])).toString(
    "base64url",
  );
  return `rkm_${named}.${rolloutCode(env, run_id, named)}`;
}

/** Null for any text that is not a key of this deployment. */
export function readRolloutKey(env: SecretsEnv, key: string): RolloutAccess | null {
  const [, named = "", code = ""] = ROLLOUT_KEY.exec(key) ?? [];
  try {
    const parts: unknown = JSON.parse(Buffer.from(named, "base64url").toString());
    if (!Array.isArray(parts)) return null;
    const [orgId, projectId, rollout_id, host, lease] = parts.map(String);
    const read = readId(env, rollout_id ?? "");
    if (read?.kind !== "rollout" || !isSameText(rolloutCode(env, read.runId, named), code)) return null;
    const scope = { orgId: orgId ?? "", projectId: projectId ?? "" };
    return { scope, run_id: read.runId, rollout_id: read.id, host: Number(host), lease: Number(lease) };
  } catch {
    return null;
  }
}

function rolloutCode(env: SecretsEnv, runId: string, named: string): string {
  return createHmac("sha256", deriveKey(secretOfRun(env, runId), "rollout-keys"))
    .update(named)
    .digest("base64url");
}

/**
 * The token with which the holder of the current secret reads and restores the whole deployment. The command line derives
 * the same (src/cli/deploy/operator-client.ts).
 */
export function operatorToken(env: SecretsEnv): string {
  return deriveKey(secretsOf(env)[0], "operator").toString("base64url");
}

/** A name of the current secret. It reveals nothing of the secret. */
export function secretName(env: SecretsEnv): string {
  return sealKeyId(secretsOf(env)[0]);
}

export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Whether two texts are equal, in a time that does not depend on where they differ. */
export function isSameText(one: string, other: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

function sealKey(secret: string): Promise<CryptoKey> {
  const key = deriveKey(secret, "endpoint-keys");
  return crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt", "decrypt"]);
}

function deriveKey(secret: string, purpose: string): Buffer {
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

/**
 * What minting ids needs: a clock (`now` is epoch milliseconds), the runtime's randomness, and our keyed hash. `orgId`: the
 * owner of what will be looked up by the id or token alone, which then names the D1 database of the owner's rows.
 */
export function minting(env: Env, now: number, orgId?: string): Minting {
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  const owned = orgId === undefined ? {} : { database: databaseNumberIn(orgId) };
  return { now, random, mac: idMac(secretsOf(env)[0]), ...owned };
}

/** A token as its row is looked up. */
export function hashToken(token: string): HashedToken {
  return { hash: sha256Hex(token), database: databaseNumberIn(token) };
}

/**
 * Bytes derived from a text and the deployment's secret: always the same for the same text, and unpredictable without
 * the secret. For a token that a repeated request must get again.
 */
export function repeatableBytes(env: SecretsEnv, text: string): Minting["random"] {
  const key = deriveKey(secretsOf(env)[0], "repeatable");
  return (bytes) => new Uint8Array(hkdfSync("sha256", key, text, "", bytes));
}

/** An endpoint's key as it is stored: sealed, with the last characters that may be shown. */
export async function sealedKey(
  env: Env,
  scope: Scope,
  endpointId: string,
  key: string | null,
): Promise<Pick<EndpointRow, "sealed_key" | "api_key_last4">> {
  if (key === null) return { sealed_key: null, api_key_last4: null };
  const sealed_key = await seal(env, key, sealContext(scope, endpointId));
  return { sealed_key, api_key_last4: last4Of(key) };
}

/** Enough to recognise a key; null for a key so short that four characters would reveal too much. */
function last4Of(key: string): string | null {
  return key.length < 12 ? null : key.slice(-4);
}
