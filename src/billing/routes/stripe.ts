/**
 * Routes for payments through Stripe, and for Stripe's events. They answer 404 if the deployment has no Stripe account.
 */

import { AnyObject } from "../../contract/primitives.ts";
import { IDEMPOTENCY_HEADER, readCreation } from "../../kernel/http/answer.ts";
import { logDone } from "../../kernel/http/audit.ts";
import { Refusal, unwrap } from "../../kernel/http/errors.ts";
import { idempotencyKeyOf, readText } from "../../kernel/http/input.ts";
import { type ApiContext, type Operation, serviceOf } from "../../kernel/http/operation.ts";
import { refuseStranger, sharerOf } from "../../kernel/http/strangers.ts";
import type { BillingService } from "../service.ts";
import { CheckoutRequest, CheckoutView, StripeReceipt } from "../wire.ts";

const UNSIGNED: readonly string[] = ["invalid_signature", "stale_timestamp"];

const service = serviceOf<BillingService>("billing");

export const stripeOperations: readonly Operation[] = [
  {
    id: "createCheckout",
    route: "POST /v1/checkouts",
    permission: "billing:write",
    reach: "organization",
    summary: "Start a payment for the balance of your organisation",
    description:
      "Open `url` to pay. The balance is updated when Stripe confirms the payment, usually within seconds. If the deployment has no Stripe account, the path does not exist.",
    headers: IDEMPOTENCY_HEADER,
    body: { schema: CheckoutRequest },
    reply: { status: 201, description: "The payment page", schema: CheckoutView },
    errors: ["not_found", "idempotency_conflict"],
    handle: createCheckout,
  },
  {
    id: "receiveStripeEvent",
    route: "POST /v1/stripe/webhook",
    permission: "anybody",
    reach: "organization",
    summary: "For Stripe: report a payment, a refund or a dispute",
    description:
      "The body is signed by Stripe in the header `Stripe-Signature`, at most 300 s ago. A repeated event posts nothing more, and other event types are ignored.",
    headers: {
      "Stripe-Signature": "Stripe's signature",
      "Idempotency-Key": "accepted but not needed: each event is posted once",
    },
    body: {
      schema: AnyObject,
      example: { id: "evt_1QabcdEfGhIjKlMn", object: "event", type: "payment_intent.succeeded", data: { object: {} } },
    },
    reply: { description: "The result", schema: StripeReceipt },
    errors: ["not_found", "invalid_signature", "stale_timestamp", "rate_limited", "storage_full"],
    handle: receiveEvent,
  },
];

async function createCheckout(context: ApiContext): Promise<Response> {
  const { request, options } = await readCreation(context, CheckoutRequest);
  const { caller } = context.var;
  return context.json(unwrap(await service(context).createCheckout(context.env, caller, request, options)), 201);
}

async function receiveEvent(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const signature = context.req.header("stripe-signature") ?? "";
  const { now } = context.var;
  const payload = await readText(context.env, context.req.raw, sharerOf(context));
  const received = await service(context).receiveStripeEvent(context.env, { payload, signature, now: now() });
  if (!received.ok && UNSIGNED.includes(received.error.code))
    await refuseStranger(context, new Refusal(received.error));
  const { receipt, posted_to } = unwrap(received);
  if (posted_to !== null) {
    await logDone(context, posted_to, { who: "stripe", action: "receiveStripeEvent", made: receipt.event_id });
  }
  return context.json(receipt);
}
