/**
 * Reads from a Stripe event how much money came in or went back. Pure: the same event always gives the same result,
 * with the same name, so that it is posted once, however often and in whatever order events arrive.
 *
 * Everything about a payment has the payment's id as its source. The period distinguishes its parts: each refund has
 * its own id, so a refund that failed and is made again is another part.
 */
import * as z from "zod";
import { MICROS_PER_CENT } from "./wire.ts";

/** The API version of the events. A webhook with another version is refused. */
export const STRIPE_VERSION = "2026-10-28.endive";

/** The metadata field that names the organisation of a payment. */
export const ORGANIZATION_FIELD = "rollcall_organization";

/** Statuses of a refund that did not reach the payer. */
const UNDONE: readonly string[] = ["failed", "canceled"];

/** The period of the payment itself. */
export const PAID = "paid";

const CURRENCY = "usd";
const Metadata = z.record(z.string(), z.string()).nullish();
const Cents = z.int().nonnegative();

export const StripeEvent = z.object({
  id: z.string().max(255),
  type: z.string().max(255),
  api_version: z.string().nullish(),
  data: z.object({ object: z.unknown() }),
});
export type StripeEvent = z.infer<typeof StripeEvent>;

const Session = z.object({
  id: z.string(),
  mode: z.string(),
  payment_status: z.string(),
  amount_total: Cents.nullable(),
  currency: z.string().nullable(),
  payment_intent: z.string().nullable(),
  metadata: Metadata,
});
const PaymentIntent = z.object({ id: z.string(), amount_received: Cents, currency: z.string(), metadata: Metadata });
const Refund = z.object({
  id: z.string(),
  amount: Cents,
  currency: z.string(),
  status: z.string().nullable(),
  charge: z.string().nullable(),
  payment_intent: z.string().nullable(),
});
const Dispute = z.object({
  id: z.string(),
  amount: Cents,
  currency: z.string(),
  status: z.string(),
  charge: z.string(),
  payment_intent: z.string().nullable(),
});

/** Money that came in (positive) or went back (negative). */
export interface PaymentNews {
  readonly kind: "top_up" | "refund" | "dispute";
  /** The payment, `pi_…`; for old payments the charge, `ch_…`. */
  readonly payment: string;
  readonly period: string;
  readonly amount_micros: number;
  /** The organisation; null if the event does not name it: then it is read from the payment. */
  readonly organization: string | null;
}

/** Why nothing is posted. */
export interface Ignored {
  readonly ignored: string;
  /** True: money moved that is in no ledger, so an operator must look at it. */
  readonly alarming?: true;
}

/** Throws ZodError if the event does not have the shape of the pinned version. */
export function newsOf({ type, data: { object } }: StripeEvent): PaymentNews | Ignored {
  switch (type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
      return paidBySession(Session.parse(object));
    case "payment_intent.succeeded":
      return paid(PaymentIntent.parse(object));
    case "refund.created":
      return refunded(Refund.parse(object));
    case "refund.failed":
    case "refund.updated":
    case "charge.refund.updated":
      return refundUndone(Refund.parse(object));
    case "charge.dispute.created":
    case "charge.dispute.funds_withdrawn":
      return disputed(Dispute.parse(object), type);
    case "charge.dispute.closed":
    case "charge.dispute.funds_reinstated":
      return settled(Dispute.parse(object), type);
    default:
      return { ignored: `events of the type ${type} are ignored` };
  }
}

function paidBySession({
  id,
  mode,
  payment_status,
  amount_total,
  currency,
  payment_intent,
  metadata,
}: z.infer<typeof Session>) {
  if (mode !== "payment" || payment_intent === null) return { ignored: `${id} is not a payment` };
  if (payment_status !== "paid") return { ignored: `${id} is not paid yet` };
  return paid({ id: payment_intent, amount_received: amount_total ?? 0, currency: currency ?? "", metadata });
}

function paid({ id, amount_received, currency, metadata }: z.infer<typeof PaymentIntent>): PaymentNews | Ignored {
  const organization = ownerIn(metadata);
  // The account may receive payments for other purposes: without our metadata they are ignored.
  if (organization === null) return { ignored: `the metadata of ${id} has no organisation` };
  return inDollars(currency, {
    kind: "top_up",
    payment: id,
    period: PAID,
    amount_micros: micros(amount_received),
    organization,
  });
}

function refunded({ id, amount, ...of }: z.infer<typeof Refund>): PaymentNews | Ignored {
  return ofRefund({ id, ...of }, id, -micros(amount));
}

/** A refund that did not reach the payer: its amount comes back. */
function refundUndone({ id, amount, status, ...of }: z.infer<typeof Refund>): PaymentNews | Ignored {
  if (status === null || !UNDONE.includes(status)) return { ignored: `${id} is ${status ?? "in progress"}` };
  return ofRefund({ id, ...of }, `${id}/failed`, micros(amount));
}

function ofRefund(
  {
    id,
    currency,
    charge,
    payment_intent,
  }: Pick<z.infer<typeof Refund>, "id" | "currency" | "charge" | "payment_intent">,
  period: string,
  amount_micros: number,
): PaymentNews | Ignored {
  const payment = payment_intent ?? charge;
  if (payment === null) return { ignored: `${id} belongs to no payment` };
  return inDollars(currency, { kind: "refund", payment, period, amount_micros, organization: null });
}

/**
 * An inquiry moves no money. If it becomes a dispute, an event for the withdrawn funds follows. A prevented dispute is
 * settled by a refund, which has its own event.
 */
function disputed(dispute: z.infer<typeof Dispute>, type: string): PaymentNews | Ignored {
  const { id, amount, status } = dispute;
  if (type === "charge.dispute.created" && (status.startsWith("warning_") || status === "prevented")) {
    return { ignored: `${id} moves no money: its status is ${status}` };
  }
  return ofDispute(dispute, id, -micros(amount));
}

/** For a dispute that was won, the withdrawn amount comes back, once. */
function settled(dispute: z.infer<typeof Dispute>, type: string): PaymentNews | Ignored {
  const { id, amount, status } = dispute;
  if (type === "charge.dispute.closed" && status !== "won") return { ignored: `${id} was closed as ${status}` };
  return ofDispute(dispute, `${id}/won`, micros(amount));
}

function ofDispute(
  { charge, currency, payment_intent }: z.infer<typeof Dispute>,
  period: string,
  amount_micros: number,
): PaymentNews | Ignored {
  const news = { kind: "dispute", payment: payment_intent ?? charge, period, amount_micros } as const;
  return inDollars(currency, { ...news, organization: null });
}

function inDollars(currency: string, news: PaymentNews): PaymentNews | Ignored {
  if (currency === CURRENCY) return news;
  return { ignored: `${news.payment} is in ${currency}, and the ledger is in dollars`, alarming: true };
}

function micros(cents: number): number {
  return cents * MICROS_PER_CENT;
}

/** The organisation in a payment's metadata. */
export function ownerIn(metadata: Readonly<Record<string, string>> | null | undefined): string | null {
  return metadata?.[ORGANIZATION_FIELD] ?? null;
}
