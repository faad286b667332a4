/** Creates keys: the row to store, and the token, which is shown once. */

import { type Minting, mintId, mintToken } from "../core/ids.ts";
import { minting, sha256Hex } from "../kernel/kit/secrets.ts";
import { keyViewOf, type NewKey } from "./queries/api-keys.ts";
import type { CreatedKey } from "./wire.ts";

export type KeyAttributes = Pick<
  NewKey,
  "name" | "scopes" | "project_id" | "person_id" | "requests_per_minute" | "created_by" | "maker_id" | "expires_at"
>;

interface KeyMinting {
  /** The owner. */
  readonly orgId: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** What the token is made of, if it must be the same for a repeated request. */
  readonly random?: Minting["random"] | undefined;
}

export function mintKey(
  env: Env,
  attributes: KeyAttributes,
  { orgId, now, random }: KeyMinting,
): { row: NewKey; token: string } {
  const mint = minting(env, now, orgId);
  const token = mintToken("rk", { ...mint, random: random ?? mint.random });
  const row = {
    ...attributes,
    id: mintId("key", mint),
    hash: sha256Hex(token),
    prefix: token.slice(0, 7),
    last4: token.slice(-4),
    created_at: now,
    revoked_at: null,
    rotated_to: null,
  };
  return { row, token };
}

/** `token`: null in the reply to a repeat, since it is not stored. */
export function createdKeyOf(row: NewKey, token: string | null): CreatedKey {
  return { ...keyViewOf(row), key: token };
}
