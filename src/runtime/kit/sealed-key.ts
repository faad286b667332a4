/** An endpoint's key as it is stored: sealed, beside what may be shown of it. */
import type { Scope } from "../../contract/scope.ts";
import type { EndpointRow } from "../../db/schema.ts";
import { seal, sealContext } from "./secrets.ts";

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
