/** What an organisation has and owes, its budgets, and how money comes in: the wire. Amounts are whole micro-dollars. */
import * as z from "zod";
import { BILLING_MODES, LedgerEntry, SignedMicros } from "./money.ts";
import { Count, EXAMPLE, listOf, MaybeText, NonEmpty, named, namedInput, Seconds } from "./primitives.ts";
import { ShownText, WebAddress } from "./shown-text.ts";

/** Ten million dollars: more than that nobody means at once. */
const MOST_MICROS = 10_000_000_000_000;
const Micros = z.int().min(1).max(MOST_MICROS);
const Note = ShownText.min(1).max(500);

export const Billing = z.enum(BILLING_MODES);

/** How far a balance may fall below 0; null: any. */
export const CreditLimit = z.int().min(0).max(MOST_MICROS).nullable();

export const BalanceView = named("Balance", {
  object: z.literal("balance"),
  organization_id: z.string().meta({ example: EXAMPLE.organization }),
  billing: Billing.meta({ example: "prepaid" }),
  balance_micros: SignedMicros.describe("what is paid and not used yet; negative: what is owed").meta({
    example: 4_995_696,
  }),
  reserved_micros: Count.describe("held for runs that go on").meta({ example: 120_000 }),
  available_micros: SignedMicros.nullable()
    .describe("what further runs may reserve; null: any amount")
    .meta({ example: 4_875_696 }),
  credit_limit_micros: CreditLimit.describe("how far it may fall below 0 where billing is postpaid; null: any").meta({
    example: 0,
  }),
  entries: Count.describe("of the ledger").meta({ example: 40 }),
});
export type BalanceView = z.infer<typeof BalanceView>;

const Said = z.union([z.number(), z.string()]).nullable();

export const LedgerVerification = named("LedgerVerification", {
  object: z.literal("ledger_verification"),
  organization_id: z.string().meta({ example: EXAMPLE.organization }),
  ok: z.boolean().describe("no differences"),
  entries: Count.meta({ example: 40 }),
  balance_micros: SignedMicros.meta({ example: 4_995_696 }),
  recomputed_micros: SignedMicros.describe("added up again from the entries").meta({ example: 4_995_696 }),
  differences: z
    .array(
      z.object({
        what: z.string(),
        entry: z.int().nullable().describe("its number"),
        expected: Said,
        actual: Said,
      }),
    )
    .meta({ example: [] }),
});
export type LedgerVerification = z.infer<typeof LedgerVerification>;

const Organization = NonEmpty.max(100).describe("its id").meta({ example: EXAMPLE.organization });

export const TopUpRequest = namedInput("TopUpRequest", {
  organization: Organization,
  amount_micros: Micros.meta({ example: 5_000_000 }),
  note: Note.nullable().default(null).meta({ example: "invoice 2026-117" }),
});
export type TopUpRequest = z.output<typeof TopUpRequest>;
export type TopUpRequestInput = z.input<typeof TopUpRequest>;

export const ADJUSTMENT_KINDS = ["refund", "dispute", "correction"] as const;

export const AdjustmentRequest = namedInput("AdjustmentRequest", {
  organization: Organization,
  kind: z.enum(ADJUSTMENT_KINDS).meta({ example: "correction" }),
  amount_micros: z
    .int()
    .min(-MOST_MICROS)
    .max(MOST_MICROS)
    .refine((micros) => micros !== 0, { error: "must not be 0" })
    .describe("what it does to the balance: negative takes away")
    .meta({ example: -260 }),
  source: NonEmpty.max(200).describe("`source_id` of what it is about").meta({ example: EXAMPLE.rollout }),
  note: Note.describe("why").meta({ example: "charged before the outage was known" }),
});
export type AdjustmentRequest = z.output<typeof AdjustmentRequest>;

/** What an operator posted. */
export const PostedEntry = named("PostedEntry", {
  object: z.literal("posted_entry"),
  organization_id: z.string().meta({ example: EXAMPLE.organization }),
  entry: LedgerEntry.nullable()
    .describe("null in the answer to a repeat, once the entry is archived")
    .meta({
      example: {
        kind: "top_up",
        source_id: "top_3hd6ks9g1yr2jpe7ma4q8vbn8c0tz5xw",
        period: "paid",
        project_id: null,
        amount_micros: 5_000_000,
        price_version: null,
        lines: [
          { account: "balance", micros: 5_000_000 },
          { account: "paid_in/operator", micros: -5_000_000 },
        ],
        note: "invoice 2026-117",
      },
    }),
  balance_micros: SignedMicros.meta({ example: 5_000_000 }),
});
export type PostedEntry = z.infer<typeof PostedEntry>;

export const BUDGET_TARGETS = ["organization", "project", "key"] as const;
const BudgetTarget = z.enum(BUDGET_TARGETS);
export type BudgetTarget = z.infer<typeof BudgetTarget>;

export const BudgetView = named("Budget", {
  object: z.literal("budget"),
  id: z.string().meta({ example: EXAMPLE.budget }),
  target_kind: BudgetTarget.meta({ example: "project" }),
  target_id: z
    .string()
    .describe("of the organisation or the project; or of the key or person that begins runs")
    .meta({ example: EXAMPLE.project }),
  limit_micros: Count.describe("for each month of UTC").meta({ example: 20_000_000 }),
  spent_micros: Count.describe("this month").meta({ example: 10_400_000 }),
  reserved_micros: Count.describe("held for runs that go on").meta({ example: 120_000 }),
  thresholds_crossed: z
    .array(z.int())
    .describe("of 50, 80 and 100 per cent, this month")
    .meta({ example: [50] }),
  created_at: Seconds,
  updated_at: Seconds,
});
export type BudgetView = z.infer<typeof BudgetView>;
export const BudgetList = listOf(BudgetView, "BudgetList", EXAMPLE.budget);

const BudgetLimit = z.int().min(0).max(MOST_MICROS).describe("for each month of UTC; 0: nothing may be spent");

export const BudgetRequest = namedInput("BudgetRequest", {
  target_kind: BudgetTarget.meta({ example: "project" }),
  target_id: NonEmpty.max(200)
    .optional()
    .describe("id or name of a project; id of a key or a person; absent for the organisation")
    .meta({ example: EXAMPLE.project }),
  limit_micros: BudgetLimit.meta({ example: 20_000_000 }),
});
export type BudgetRequest = z.output<typeof BudgetRequest>;

export const BudgetPatch = namedInput("BudgetPatch", { limit_micros: BudgetLimit.meta({ example: 40_000_000 }) });
export type BudgetPatch = z.output<typeof BudgetPatch>;

/** A cent: nothing smaller is paid. */
export const MICROS_PER_CENT = 10_000;

export const CheckoutRequest = namedInput("CheckoutRequest", {
  amount_micros: z
    .int()
    .min(500_000)
    .max(999_999_000_000)
    .refine((micros) => micros % MICROS_PER_CENT === 0, { error: "must be whole cents: a multiple of 10000" })
    .describe("from 50 cents on, in whole cents")
    .meta({ example: 25_000_000 }),
  success_url: WebAddress.describe("where the payer is sent then").meta({ example: "https://example.com/paid" }),
  cancel_url: WebAddress.optional().describe("where to, if they change their mind").meta({
    example: "https://example.com/billing",
  }),
});
export type CheckoutRequest = z.output<typeof CheckoutRequest>;

export const CheckoutView = named("Checkout", {
  object: z.literal("checkout"),
  id: z.string().describe("Stripe's id of it").meta({ example: "cs_test_a1b2c3d4e5f6" }),
  url: z
    .string()
    .describe("where it is paid")
    .meta({ example: "https://checkout.stripe.com/c/pay/cs_test_a1b2c3d4e5f6" }),
  amount_micros: Count.meta({ example: 25_000_000 }),
  expires_at: Seconds,
});
export type CheckoutView = z.infer<typeof CheckoutView>;

/** What came of an event of Stripe's. */
export const StripeReceipt = named("StripeReceipt", {
  object: z.literal("stripe_receipt"),
  event_id: z.string().meta({ example: "evt_1QabcdEfGhIjKlMn" }),
  outcome: z.enum(["posted", "repeated", "ignored"]).meta({ example: "posted" }),
  reason: MaybeText.describe("why it was ignored"),
});
export type StripeReceipt = z.infer<typeof StripeReceipt>;
