/** Reads an endpoint's address and secrets, for each alarm, and makes one attempt. */

import { LIMITS } from "../contract/limits.ts";
import { quotedText } from "../contract/shown-text.ts";
import type { Send } from "../kernel/clients/outgoing.ts";
import { withoutKey } from "../kernel/clients/without-key.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { type AllowedHosts, allowedHosts, wayOut } from "../kernel/kit/address.ts";
import { idsOf, logError } from "../kernel/kit/log.ts";
import { openSealed } from "../kernel/kit/sealed-values.ts";
import { signedHeaders } from "../kernel/kit/sign-webhook.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { postWebhook } from "./client.ts";
import type { Delivery, Tried } from "./deliveries.ts";
import { findWebhook, secretsOfWebhook } from "./queries.ts";
import type { WebhookOf } from "./rpc.ts";
import type { Answer } from "./rules.ts";

/** The endpoint as stored in the database. */
export type Address =
  /** The endpoint was deleted. */
  | { readonly kind: "none" }
  | { readonly kind: "disabled"; readonly at: number; readonly reason: string }
  /** Its newest secret cannot be decrypted, so nothing can be signed with it. */
  | { readonly kind: "locked"; readonly reason: string }
  | { readonly kind: "open"; readonly url: string; readonly secrets: readonly string[]; readonly hosts: AllowedHosts };

/** Throws if the database does not answer. */
export async function readAddress(
  env: Env,
  subrequests: Subrequests,
  { scope, webhook_id }: WebhookOf,
  now: number,
): Promise<Address> {
  const row = await subrequests.fetch(() => findWebhook(databaseOf(env), scope, webhook_id));
  if (row === null) return { kind: "none" };
  if (row.disabled_at !== null) {
    return { kind: "disabled", at: row.disabled_at, reason: row.disabled_reason ?? "somebody disabled it" };
  }
  const sealed = await subrequests.fetch(() => secretsOfWebhook(databaseOf(env), scope, webhook_id, now));
  const secrets: string[] = [];
  for (const [at, { id, sealed_secret }] of sealed.entries()) {
    try {
      secrets.push(await openSealed(env, { kind: "webhook_secret", scope, id, sealed: sealed_secret }));
    } catch (thrown) {
      logError("the secret of a webhook does not open", { ...idsOf({ scope }), webhook_id, secret_id: id }, thrown);
      // A receiver verifies with the newest secret; older secrets are only valid during an overlap.
      if (at === 0) return { kind: "locked", reason: "its secret cannot be decrypted: rotate it" };
    }
  }
  const hosts = await subrequests.fetch(() => allowedHosts(env, scope));
  return { kind: "open", url: row.url, secrets, hosts };
}

/** Never throws. `now`: the time in the signature, in epoch milliseconds. */
export async function attempt(
  env: Env,
  { url, secrets, hosts }: Extract<Address, { kind: "open" }>,
  { id, body }: Delivery,
  now: number,
  network: Send | undefined,
): Promise<Answer> {
  const headers = signedHeaders(secrets, id, body, now);
  const send = wayOut(env, hosts, network);
  const limits = { timeoutMs: LIMITS.webhookAttemptMs, bytes: LIMITS.webhookAnswerBytes };
  return await postWebhook({ url, body, headers, send, ...limits });
}

/** The log entry of an attempt: one line of visible text, without the secrets. */
export function triedOf(answer: Answer, why: string | null, latency_ms: number, secrets: readonly string[]): Tried {
  const shown = (text: string) => {
    const clean = secrets.reduce((rest, secret) => withoutKey(rest, secret), text);
    return quotedText(clean.replaceAll(/\s+/g, " ").trim(), LIMITS.webhookAnswerCharacters);
  };
  if ("error" in answer) return { status: null, answer: null, error: shown(answer.error), latency_ms };
  const text = shown(answer.text);
  return { status: answer.status, answer: text === "" ? null : text, error: why, latency_ms };
}
