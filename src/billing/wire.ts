/** The wire form of balance, budgets, payments, usage and statements; CSV as in RFC 4180. Whole micro-dollars. */
import * as z from "zod";
import {
  Billing,
  CHARGE_LINES,
  CreditLimit,
  LedgerEntry,
  MOST_MICROS,
  Month,
  SignedMicros,
} from "../contract/money.ts";
import { Count, EXAMPLE, listOf, MaybeText, NonEmpty, named, namedInput, Seconds } from "../contract/primitives.ts";
import { ShownText, WebAddress } from "../contract/shown-text.ts";

const Micros = z.int().min(1).max(MOST_MICROS);
const Note = ShownText.min(1).max(500);

export const BalanceView = named("Balance", {
  object: z.literal("balance"),
  organization_id: z.string().meta({ example: EXAMPLE.organization }),
  billing: Billing.meta({ example: "prepaid" }),
  balance_micros: SignedMicros.describe("what is paid and not used yet; negative = owed").meta({
    example: 4_995_696,
  }),
  reserved_micros: Count.describe("reserved for runs that have not ended").meta({ example: 120_000 }),
  available_micros: SignedMicros.nullable()
    .describe("what further runs may reserve; null: any amount")
    .meta({ example: 4_875_696 }),
  credit_limit_micros: CreditLimit.describe("how far a postpaid balance may fall below 0; null = any amount").meta({
    example: 0,
  }),
  entries: Count.describe("of the ledger").meta({ example: 40 }),
});
export type BalanceView = z.infer<typeof BalanceView>;

const FigureOrText = z.union([z.number(), z.string()]).nullable();

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
        expected: FigureOrText,
        actual: FigureOrText,
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
    .describe("change of the balance; negative reduces it")
    .meta({ example: -260 }),
  source: NonEmpty.max(200).describe("`source_id` of the entry it corrects").meta({ example: EXAMPLE.rollout }),
  note: Note.describe("why").meta({ example: "charged before the outage was known" }),
});
export type AdjustmentRequest = z.output<typeof AdjustmentRequest>;

/** What an operator posted. */
export const PostedEntry = named("PostedEntry", {
  object: z.literal("posted_entry"),
  organization_id: z.string().meta({ example: EXAMPLE.organization }),
  entry: LedgerEntry.nullable()
    .describe("null in the reply to a repeat once the entry is archived")
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
    .describe("of the organisation or project, or of the key or person that starts runs")
    .meta({ example: EXAMPLE.project }),
  limit_micros: Count.describe("for each month of UTC").meta({ example: 20_000_000 }),
  spent_micros: Count.describe("this month").meta({ example: 10_400_000 }),
  reserved_micros: Count.describe("reserved for runs that have not ended").meta({ example: 120_000 }),
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

/** A cent: payments are in whole cents. */
export const MICROS_PER_CENT = 10_000;

export const CheckoutRequest = namedInput("CheckoutRequest", {
  amount_micros: z
    .int()
    .min(500_000)
    .max(999_999_000_000)
    .refine((micros) => micros % MICROS_PER_CENT === 0, { error: "must be whole cents: a multiple of 10000" })
    .describe("at least 50 cents, in whole cents")
    .meta({ example: 25_000_000 }),
  success_url: WebAddress.describe("redirect after payment").meta({ example: "https://example.com/paid" }),
  cancel_url: WebAddress.optional().describe("redirect after cancelling").meta({
    example: "https://example.com/billing",
  }),
});
export type CheckoutRequest = z.output<typeof CheckoutRequest>;

export const CheckoutView = named("Checkout", {
  object: z.literal("checkout"),
  id: z.string().describe("Stripe's id of it").meta({ example: "cs_test_a1b2c3d4e5f6" }),
  url: z
    .string()
    .describe("URL of the payment page")
    .meta({ example: "https://checkout.stripe.com/c/pay/cs_test_a1b2c3d4e5f6" }),
  amount_micros: Count.meta({ example: 25_000_000 }),
  expires_at: Seconds,
});
export type CheckoutView = z.infer<typeof CheckoutView>;

/** The result of a Stripe event. */
export const StripeReceipt = named("StripeReceipt", {
  object: z.literal("stripe_receipt"),
  event_id: z.string().meta({ example: "evt_1QabcdEfGhIjKlMn" }),
  outcome: z.enum(["posted", "repeated", "ignored"]).meta({ example: "posted" }),
  reason: MaybeText.describe("why it was ignored"),
});
export type StripeReceipt = z.infer<typeof StripeReceipt>;

export const USAGE_GROUPS = ["project", "key", "environment", "model", "kind"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];
/** A name for some of the groups. */
export type UsageNames = Readonly<Partial<Record<UsageGroup, string | undefined>>>;

/** The seconds of a bucket, by the name of its width. */
export const BUCKET_WIDTHS = { "1h": 3600, "1d": 86_400 } as const;
export type BucketWidth = keyof typeof BUCKET_WIDTHS;

/** The counts, in the order of the CSV columns. */
export const USE_COUNTS = [
  "rollouts",
  "scored",
  "turns",
  "calls",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "judge_calls",
  "judge_input_tokens",
  "judge_output_tokens",
  "lost_calls",
  "pushes",
  "byte_days",
  "isolate_days",
  "policy_micros",
  "judge_micros",
  "priced_calls",
] as const;
export type UseCount = (typeof USE_COUNTS)[number];

const OF_NAME = "null unless grouped by it";
const Lines = z.partialRecord(z.enum(CHARGE_LINES), Count);

export const UsageResult = named("UsageResult", {
  object: z.literal("usage.result"),
  project_id: MaybeText.describe(OF_NAME).meta({ example: EXAMPLE.project }),
  key_id: MaybeText.describe(`the key or person that began the runs; ${OF_NAME}`).meta({ example: null }),
  environment: MaybeText.describe(OF_NAME).meta({ example: null }),
  model: MaybeText.describe(OF_NAME).meta({ example: null }),
  kind: MaybeText.describe(`eval, training or storage; ${OF_NAME}`).meta({ example: null }),
  rollouts: Count.describe("ended with any outcome").meta({ example: 40 }),
  scored: Count.meta({ example: 38 }),
  turns: Count.meta({ example: 92 }),
  calls: Count.describe("sent to the policy").meta({ example: 95 }),
  input_tokens: Count.meta({ example: 10_400 }),
  cached_input_tokens: Count.describe("input tokens that the endpoint read from its cache"),
  output_tokens: Count.meta({ example: 5210 }),
  judge_calls: Count,
  judge_input_tokens: Count,
  judge_output_tokens: Count,
  lost_calls: Count.describe("calls whose replies were lost; their tokens are not counted").meta({ example: 3 }),
  pushes: Count.describe("batches that a trainer leased or accepted"),
  byte_days: Count.describe("bytes stored, once a day"),
  isolate_days: Count.describe("published environments' versions that runs used, once a day for the day before"),
  policy_micros: Count.describe(
    "what the policy's tokens cost by the prices of their endpoints, in micro-dollars",
  ).meta({
    example: 20_820,
  }),
  judge_micros: Count.describe("the same for the tokens of judges"),
  priced_calls: Count.describe(
    "calls of the policy and of judges whose cost is in those two; the cost of the other calls is unknown",
  ).meta({ example: 95 }),
  cost_micros: SignedMicros.describe("what the platform charged, in micro-dollars").meta({ example: 4304 }),
  lines: Lines.describe("the same by line").meta({ example: { rollout: 2400, turns: 1104, scoring: 800 } }),
});
export type UsageResult = z.infer<typeof UsageResult>;

export const UsageBucket = named("UsageBucket", {
  object: z.literal("bucket"),
  start_time: Seconds.meta({ example: 1_795_392_000 }),
  end_time: Seconds.meta({ example: 1_795_478_400 }),
  results: z
    .array(UsageResult)
    .describe("empty if nothing was used")
    .meta({ example: [{}] }),
});
export type UsageBucket = z.infer<typeof UsageBucket>;

export const UsagePage = named("UsagePage", {
  object: z.literal("page"),
  data: z.array(UsageBucket).meta({ example: [{}] }),
  has_more: z.boolean(),
  next_page: MaybeText.describe("send it as `page` for the next buckets").meta({ example: null }),
});
export type UsagePage = z.infer<typeof UsagePage>;

export const StatementView = named("Statement", {
  object: z.literal("statement"),
  month: Month.describe("in UTC, by the time that entries were posted"),
  state: z.enum(["open", "closed"]).describe("closed: no more entries are posted to it").meta({ example: "closed" }),
  opening_micros: SignedMicros.describe("the organisation's balance at the beginning of the month").meta({
    example: 5_000_000,
  }),
  closing_micros: SignedMicros.describe("the balance at the end of the month; of the open month, the balance now").meta(
    { example: 4_995_696 },
  ),
  lines: z
    .array(z.object({ account: z.string(), micros: SignedMicros }))
    .describe("change of the balance by account: opening plus all of these is closing")
    .meta({
      example: [
        { account: "revenue/rollout", micros: -2400 },
        { account: "revenue/scoring", micros: -800 },
        { account: "revenue/turns", micros: -1104 },
      ],
    }),
  entries: Count.describe("entries of the ledger that were posted in the month").meta({ example: 40 }),
  first_entry: Count.nullable().describe("number of the first of them; null if none").meta({ example: 1 }),
  last_entry: Count.nullable().describe("number of the last of them").meta({ example: 40 }),
  closed_at: Seconds.nullable(),
});
export type StatementView = z.infer<typeof StatementView>;

export const StatementList = named("StatementList", {
  object: z.literal("list"),
  data: z.array(StatementView).meta({ example: [{}] }),
  has_more: z.boolean(),
});
export type StatementList = z.infer<typeof StatementList>;

type Cell = string | number | null | undefined;

/** A cell that a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

const NAMES = ["project_id", "key_id", "environment", "model", "kind"] as const;
const LINE_COLUMNS = CHARGE_LINES.map((line) => `${line}_micros`);
const USAGE_COLUMNS = ["start_time", "end_time", ...NAMES, ...USE_COUNTS, "cost_micros", ...LINE_COLUMNS];

/** One line for each group of each bucket. */
export function usageCsv(buckets: readonly UsageBucket[]): string {
  const rows = buckets.flatMap(({ start_time, end_time, results }) =>
    results.map(({ object: _, lines, ...result }) => {
      const charged = Object.entries(lines).map(([line, micros]) => [`${line}_micros`, micros]);
      return { start_time, end_time, ...result, ...Object.fromEntries(charged) };
    }),
  );
  return csvText(USAGE_COLUMNS, rows);
}

/** One line for each account, between the opening and the closing balance. */
export function statementCsv({ month, opening_micros, closing_micros, lines }: StatementView): string {
  const rows = [
    { month, account: "opening balance", micros: opening_micros },
    ...lines.map((line) => ({ month, ...line })),
    { month, account: "closing balance", micros: closing_micros },
  ];
  return csvText(["month", "account", "micros"], rows);
}

/** A header and one line per row; missing values are empty. */
function csvText(columns: readonly string[], rows: readonly Readonly<Record<string, Cell>>[]): string {
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return lines.map((cells) => `${cells.map(cellText).join(",")}\r\n`).join("");
}

/** A text that starts like a formula gets an apostrophe before it, so that spreadsheets show it and do not run it. */
function cellText(cell: Cell): string {
  if (typeof cell !== "string") return cell === null || cell === undefined ? "" : String(cell);
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
