/**
 * Payments through Stripe, if the deployment has an account there: starts checkouts, and posts Stripe's events to the
 * ledger, once each. If an event is lost in a kill, Stripe sends it again.
 */

import type { Caller } from "../contract/identity.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { addTotal } from "../kernel/db/totals.ts";
import { accounts } from "../kernel/kit/account-hooks.ts";
import { wayOut } from "../kernel/kit/address.ts";
import type { CreateOptions } from "../kernel/kit/idempotency.ts";
import { logError } from "../kernel/kit/log.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { type Result, refuse, refuseOneProject } from "../kernel/messages/refusal.ts";
import type { PostReply } from "./rpc.ts";
import { ledgerObject } from "./rpc.ts";
import { openStripe, type StripeAccount, StripeRefused, StripeUnsigned } from "./stripe-client.ts";
import { newsOf, ORGANIZATION_FIELD, ownerIn, type PaymentNews, STRIPE_VERSION, StripeEvent } from "./stripe-events.ts";
import { type CheckoutRequest, type CheckoutView, MICROS_PER_CENT, type StripeReceipt } from "./wire.ts";

const AGAINST = { top_up: "paid_in/stripe", refund: "refunds", dispute: "disputes" } as const;

interface Configured {
  readonly stripe: StripeAccount;
  readonly webhookSecret: string;
}

/**
 * Creates a checkout for the caller's organisation. The balance changes when Stripe reports that the checkout is paid.
 */
export async function createCheckout(
  env: Env,
  caller: Caller,
  { amount_micros, success_url, cancel_url }: CheckoutRequest,
  { idempotencyKey }: CreateOptions,
): Promise<Result<CheckoutView>> {
  const refused = refuseOneProject(caller);
  if (refused !== null) return refused;
  const configured = await configuredStripe(env);
  if (!configured.ok) return configured;
  const { orgId, who } = caller;
  const order = {
    cents: amount_micros / MICROS_PER_CENT,
    product: "Rollcall balance",
    metadata: { [ORGANIZATION_FIELD]: orgId, rollcall_payer: who },
    ...{ success_url, cancel_url },
    // The same key in two organisations must be two keys at Stripe.
    key: idempotencyKey === null ? null : sha256Hex(JSON.stringify([orgId, idempotencyKey])),
  };
  try {
    const { id, url, expires_at } = await configured.value.stripe.begin(order);
    return { ok: true, value: { object: "checkout", id, url, amount_micros, expires_at } };
  } catch (thrown) {
    if (!(thrown instanceof StripeRefused)) throw thrown;
    if (thrown.why === "idempotency") {
      return refuse("idempotency_conflict", "this Idempotency-Key was used with another body", null);
    }
    return refuse("invalid_request", `Stripe rejected the request: ${thrown.message}`, null);
  }
}

/** A request from Stripe. */
interface Delivery {
  readonly payload: string;
  readonly signature: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/**
 * Posts what the event reports. Refused if Stripe did not sign it, or if it has another API version. Events that cannot
 * be posted are accepted; if money moved, they are logged and counted. `posted_to`: the organisation whose ledger has
 * one more entry; null: none.
 */
export async function receiveStripeEvent(
  env: Env,
  { payload, signature, now }: Delivery,
): Promise<Result<{ receipt: StripeReceipt; posted_to: string | null }>> {
  const configured = await configuredStripe(env);
  if (!configured.ok) return configured;
  const { stripe, webhookSecret } = configured.value;
  const signed = await signedEvent(stripe, { payload, signature, now }, webhookSecret);
  if (!signed.ok) return signed;
  const event = signed.value;
  const news = newsOf(event);
  if ("ignored" in news) {
    return news.alarming ? await unposted(env, event, news.ignored) : ignored(event, news.ignored);
  }
  const organization = news.organization ?? ownerIn(await stripe.metadataOf(news.payment));
  if (organization === null) return ignored(event, `the metadata of ${news.payment} has no organisation`);
  if (!(await accounts().settingsOf(env, organization)).open) {
    return await unposted(env, event, `${news.payment} is for ${organization}, which does not exist`, organization);
  }
  const { posted, gone } = await post(env, organization, news, event.id);
  if (gone) {
    return await unposted(env, event, `${news.payment} is for ${organization}, which is being deleted`, organization);
  }
  const receipt: StripeReceipt = {
    object: "stripe_receipt",
    event_id: event.id,
    outcome: posted ? "posted" : "repeated",
    reason: null,
  };
  return { ok: true, value: { receipt, posted_to: posted ? organization : null } };
}

/** The verified event, in the shape of the pinned version. */
async function signedEvent(
  stripe: StripeAccount,
  { payload, signature, now }: Delivery,
  webhookSecret: string,
): Promise<Result<StripeEvent>> {
  let found: unknown;
  try {
    found = await stripe.verify(payload, signature, webhookSecret, now);
  } catch (thrown) {
    if (!(thrown instanceof StripeUnsigned)) throw thrown;
    if (thrown.stale) return refuse("stale_timestamp", "the signature is more than 300 s old", "Stripe-Signature");
    return refuse("invalid_signature", "the signature does not match STRIPE_WEBHOOK_SECRET", "Stripe-Signature");
  }
  const event = StripeEvent.parse(found);
  if (event.api_version === STRIPE_VERSION) return { ok: true, value: event };
  const message = `api_version: this platform needs events of ${STRIPE_VERSION}: create the webhook again with that version`;
  return refuse("invalid_request", message, "api_version");
}

function post(env: Env, orgId: string, news: PaymentNews, event: string): Promise<PostReply> {
  const { kind, payment, period, amount_micros } = news;
  const about = { kind, source_id: payment, period, project_id: null, against: AGAINST[kind] };
  return ledgerObject(env, orgId).post({ orgId, ...about, amount_micros, note: event });
}

/** Money moved that is in no ledger: logs and counts it for an operator. */
async function unposted(env: Env, event: StripeEvent, reason: string, org_id?: string) {
  const ids = { event_id: event.id, ...(org_id !== undefined && { org_id }) };
  logError("money moved that is in no ledger", ids, new Error(reason));
  await addTotal(databaseOf(env), "events_unposted", 1);
  return ignored(event, reason);
}

function ignored({ id }: StripeEvent, reason: string) {
  const receipt: StripeReceipt = { object: "stripe_receipt", event_id: id, outcome: "ignored", reason };
  return { ok: true, value: { receipt, posted_to: null } } as const;
}

async function configuredStripe(env: Env): Promise<Result<Configured>> {
  const { STRIPE_SECRET_KEY: secretKey = "", STRIPE_WEBHOOK_SECRET: webhookSecret = "" } = env;
  if (secretKey === "" || webhookSecret === "") {
    const message = "this deployment takes no payments: its STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET are not set";
    return refuse("not_found", message, null);
  }
  return { ok: true, value: { stripe: await openStripe(secretKey, wayOut(env, null)), webhookSecret } };
}
