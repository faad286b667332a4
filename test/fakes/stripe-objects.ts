/**
 * Events as Stripe sends them in version 2026-10-28.endive. Each has the library's own type, so a missing member does
 * not compile.
 */
import type { Stripe } from "stripe";

export const VERSION = "2026-10-28.endive";

export interface Paid {
  /** The suffix of all ids that belong to one payment. */
  readonly mark: string;
  readonly cents: number;
  readonly currency?: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export const idsOf = ({ mark }: Pick<Paid, "mark">) => ({
  session: `cs_test_${mark}`,
  payment: `pi_${mark}`,
  charge: `ch_${mark}`,
  dispute: `du_${mark}`,
});

export function sessionOf({ mark, cents, currency = "usd", metadata }: Paid): Stripe.Checkout.Session {
  const { session, payment } = idsOf({ mark });
  return {
    id: session,
    object: "checkout.session",
    adaptive_pricing: { enabled: false },
    after_expiration: null,
    allow_promotion_codes: null,
    allowed_payment_method_types: null,
    amount_subtotal: cents,
    amount_total: cents,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    billing_address_collection: null,
    cancel_url: null,
    client_reference_id: null,
    client_secret: null,
    collected_information: null,
    consent: null,
    consent_collection: null,
    created: 1_792_000_000,
    currency,
    currency_conversion: null,
    custom_fields: [],
    custom_text: { after_submit: null, shipping_address: null, submit: null, terms_of_service_acceptance: null },
    customer: null,
    customer_account: null,
    customer_creation: "if_required",
    customer_details: null,
    customer_email: null,
    discounts: [],
    expires_at: 1_792_086_400,
    integration_identifier: null,
    invoice: null,
    invoice_creation: null,
    livemode: false,
    locale: null,
    managed_payments: null,
    metadata: { ...metadata },
    mode: "payment",
    origin_context: null,
    payment_intent: payment,
    payment_link: null,
    payment_method_collection: "if_required",
    payment_method_configuration_details: null,
    payment_method_options: { card: { request_three_d_secure: "automatic" } },
    payment_method_types: ["card"],
    payment_status: "paid",
    permissions: null,
    recovered_from: null,
    saved_payment_method_options: null,
    setup_intent: null,
    shipping_address_collection: null,
    shipping_cost: null,
    shipping_options: [],
    status: "complete",
    submit_type: null,
    subscription: null,
    success_url: "https://example.com/paid",
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ...{ ui_mode: "hosted_page", url: null, wallet_options: null },
  };
}

export function paymentOf({ mark, cents, currency = "usd", metadata }: Paid): Stripe.PaymentIntent {
  const { payment, charge } = idsOf({ mark });
  return {
    id: payment,
    object: "payment_intent",
    allowed_payment_method_types: null,
    amount: cents,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: cents,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: "automatic_async",
    client_secret: `${payment}_secret_x`,
    confirmation_method: "automatic",
    created: 1_792_000_000,
    currency,
    customer: null,
    customer_account: null,
    description: null,
    excluded_payment_method_types: null,
    last_payment_error: null,
    latest_charge: charge,
    livemode: false,
    managed_payments: null,
    metadata: { ...metadata },
    next_action: null,
    on_behalf_of: null,
    payment_method: `pm_${mark}`,
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: ["card"],
    payment_record: null,
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: "succeeded",
    transfer_group: null,
  };
}

/** `number` distinguishes the refunds of one payment. */
export function refundOf(paid: Paid, number: number, amount: number, status: string): Stripe.Refund {
  const { payment, charge } = idsOf(paid);
  return {
    id: `re_${paid.mark}_${number}`,
    object: "refund",
    amount,
    balance_transaction: `txn_${paid.mark}_${number}`,
    charge,
    created: 1_792_000_000,
    currency: paid.currency ?? "usd",
    customer: null,
    customer_account: null,
    metadata: {},
    payment_intent: payment,
    payment_method: `pm_${paid.mark}`,
    reason: null,
    receipt_number: null,
    source_transfer_reversal: null,
    status,
    transfer_reversal: null,
  };
}

export function disputeOf(paid: Paid, status: Stripe.Dispute.Status): Stripe.Dispute {
  const { payment, charge, dispute } = idsOf(paid);
  const said = { access_activity_log: null, billing_address: null, cancellation_policy: null };
  const more = { cancellation_policy_disclosure: null, cancellation_rebuttal: null, customer_communication: null };
  const payer = {
    customer_email_address: null,
    customer_name: null,
    customer_purchase_ip: null,
    customer_signature: null,
  };
  const twice = {
    duplicate_charge_documentation: null,
    duplicate_charge_explanation: null,
    duplicate_charge_id: null,
    enhanced_evidence: {},
    product_description: null,
    receipt: null,
  };
  const back = { refund_policy: null, refund_policy_disclosure: null, refund_refusal_explanation: null };
  const service = { service_date: null, service_documentation: null };
  const shipping = {
    shipping_address: null,
    shipping_carrier: null,
    shipping_date: null,
    shipping_documentation: null,
    shipping_tracking_number: null,
  };
  const free = { uncategorized_file: null, uncategorized_text: null };
  return {
    id: dispute,
    object: "dispute",
    amount: paid.cents,
    balance_transactions: [],
    charge,
    created: 1_792_000_000,
    currency: paid.currency ?? "usd",
    enhanced_eligibility_types: [],
    evidence: { ...said, ...more, ...payer, ...twice, ...back, ...service, ...shipping, ...free },
    evidence_details: {
      due_by: 1_793_000_000,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: "not_submitted",
    },
    intended_submission_method: null,
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: payment,
    reason: "fraudulent",
    status,
  };
}

export interface Told {
  readonly id?: string;
  readonly version?: string;
}

/** The body that Stripe sends. */
export function eventOf(type: string, object: object, { id, version = VERSION }: Told = {}): string {
  const event = {
    id: id ?? `evt_${crypto.randomUUID().replaceAll("-", "")}`,
    object: "event",
    api_version: version,
    created: 1_792_000_000,
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
  };
  // In Stripe's spacing, because the signature covers the exact text.
  return JSON.stringify(event, null, 2);
}
