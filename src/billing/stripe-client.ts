/**
 * A client for Stripe, based on Stripe's library: it verifies signatures, creates checkouts and reads payments. The
 * library is loaded when it is first needed, since most deployments never use it.
 */
import type { Stripe as Library } from "stripe";
import type { Send } from "../kernel/clients/outgoing.ts";
import { STRIPE_VERSION } from "./stripe-events.ts";

/** How long the signature of an event is valid, in seconds. */
export const SIGNED_S = 300;
const CALL_MS = 20_000;

/** Stripe refused the request because of its content. */
export class StripeRefused extends Error {
  override readonly name = "StripeRefused";
  /** `idempotency`: the key was used with another request. */
  readonly why: "idempotency" | "request";

  constructor(message: string, why: "idempotency" | "request") {
    super(message);
    this.why = why;
  }
}

/** The event does not have a valid signature; or (`stale`) the signature is too old. */
export class StripeUnsigned extends Error {
  override readonly name = "StripeUnsigned";
  readonly stale: boolean;

  constructor(message: string, stale: boolean) {
    super(message);
    this.stale = stale;
  }
}

export interface CheckoutOrder {
  readonly cents: number;
  readonly product: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly success_url: string;
  readonly cancel_url?: string | undefined;
  /** The Idempotency-Key for Stripe. */
  readonly key: string | null;
}

export interface Checkout {
  readonly id: string;
  readonly url: string;
  /** Epoch seconds. */
  readonly expires_at: number;
}

export interface StripeAccount {
  /** Throws StripeUnsigned. `now`: epoch milliseconds. */
  verify(payload: string, signature: string, secret: string, now: number): Promise<unknown>;
  /** Throws StripeRefused and network errors. */
  begin(order: CheckoutOrder): Promise<Checkout>;
  /** The metadata of a payment; null if the payment does not exist. */
  metadataOf(payment: string): Promise<Readonly<Record<string, string>> | null>;
}

export async function openStripe(secretKey: string, send: Send): Promise<StripeAccount> {
  const { Stripe } = await import("stripe");
  const stripe = new Stripe(secretKey, {
    apiVersion: STRIPE_VERSION,
    httpClient: Stripe.createFetchHttpClient((url, init) =>
      send(new URL(String(url)), { ...init, signal: endOf(init) }),
    ),
    maxNetworkRetries: 0,
    telemetry: false,
    timeout: CALL_MS,
  });
  const { StripeSignatureVerificationError: Unsigned, StripeIdempotencyError: Reused } = Stripe.errors;
  const { StripeInvalidRequestError: Invalid } = Stripe.errors;
  return {
    async verify(payload, signature, secret, now) {
      const crypto = Stripe.createSubtleCryptoProvider();
      try {
        return await stripe.webhooks.constructEventAsync(payload, signature, secret, SIGNED_S, crypto, now);
      } catch (thrown) {
        if (thrown instanceof Unsigned) throw new StripeUnsigned(thrown.message, /^Timestamp/.test(thrown.message));
        throw thrown;
      }
    },
    async begin(order) {
      try {
        const made = await stripe.checkout.sessions.create(
          sessionOf(order),
          order.key === null ? {} : { idempotencyKey: order.key },
        );
        if (made.url === null) throw new TypeError("Stripe created a checkout without a URL");
        return { id: made.id, url: made.url, expires_at: made.expires_at };
      } catch (thrown) {
        if (thrown instanceof Reused) throw new StripeRefused(thrown.message, "idempotency");
        if (thrown instanceof Invalid) throw new StripeRefused(thrown.message, "request");
        throw thrown;
      }
    },
    async metadataOf(payment) {
      try {
        const found = payment.startsWith("ch_")
          ? await stripe.charges.retrieve(payment)
          : await stripe.paymentIntents.retrieve(payment);
        return found.metadata;
      } catch (thrown) {
        if (thrown instanceof Invalid && thrown.statusCode === 404) return null;
        throw thrown;
      }
    },
  };
}

/** The payment gets the same metadata as the checkout, so that events about either name the organisation. */
function sessionOf({ cents, product, metadata, success_url, cancel_url }: CheckoutOrder) {
  const price_data = { currency: "usd", unit_amount: cents, product_data: { name: product } };
  return {
    mode: "payment",
    line_items: [{ quantity: 1, price_data }],
    metadata,
    payment_intent_data: { metadata },
    success_url,
    ...(cancel_url !== undefined && { cancel_url }),
  } satisfies Library.Checkout.SessionCreateParams;
}

function endOf(init: RequestInit | undefined): AbortSignal {
  return init?.signal ?? AbortSignal.timeout(CALL_MS);
}
