/**
 * Money: what the platform charges, by versioned lists of prices, and the names of charges.
 *
 * All amounts are whole micro-dollars. Each charge is rounded to the nearest micro-dollar line by line, so sums of sums
 * agree. Tokens of endpoints that the platform does not offer are paid by the customer elsewhere: they cost nothing
 * here. Their prices (`prices` of an endpoint) are shown as `policy_micros` and `judge_micros`, and count towards
 * `max_cost_micros`.
 */
import * as z from "zod";
import { Count, EXAMPLE, listOf, MaybeText, named, namedInput, Seconds } from "./primitives.ts";
import { WebAddress } from "./shown-text.ts";

/** The highest price of anything: a thousand dollars. */
const Price = z.int().min(0).max(1_000_000_000);

/** The prices of a model that the platform offers, in micro-dollars per million tokens. */
export const ModelPrice = z.strictObject({
  base_url: WebAddress.describe("of the endpoint; runs on other endpoints pay nothing for tokens"),
  model: z.string().min(1).max(500),
  input_per_mtok_micros: Price,
  cached_input_per_mtok_micros: Price.describe("for input tokens that the endpoint read from its cache"),
  output_per_mtok_micros: Price,
});
export type ModelPrice = z.infer<typeof ModelPrice>;
/** The platform's prices for tokens of a model that it offers. */
export type OfferedTokens = Omit<ModelPrice, "base_url" | "model">;

export const MODEL_PRICES_MAX = 200;

/** The platform's prices for its own work. */
export const Fees = z.strictObject({
  rollout_micros: Price.describe("per started rollout").meta({ example: 240 }),
  thousand_turns_micros: Price.describe("per 1,000 turns").meta({ example: 12_000 }),
  scoring_micros: Price.describe("per scored rollout, once for each scoring").meta({
    example: 20,
  }),
  push_micros: Price.describe("per batch that a trainer leased or accepted").meta({ example: 1000 }),
  gb_day_micros: Price.describe("per GB (10^9 bytes) and day of storage").meta({ example: 1000 }),
});
export type Fees = z.infer<typeof Fees>;

export const PriceVersion = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,30}$/, { error: "must be 1 to 31 lower-case letters, digits, dots or dashes" });

/** A list of prices never changes: another version replaces it at a given time. Runs keep their version. */
export const PriceListRequest = namedInput("PriceListRequest", {
  version: PriceVersion.meta({ example: "2026-12" }),
  effective_from: Seconds.max(9_999_999_999)
    .nullable()
    .default(null)
    .describe("null = now; or a later time, within ten years"),
  fees: Fees,
  models: z.array(ModelPrice).max(MODEL_PRICES_MAX).default([]).meta({ example: [] }),
});
export type PriceListRequest = z.output<typeof PriceListRequest>;
export type PriceListRequestInput = z.input<typeof PriceListRequest>;

export const PriceList = named("PriceList", {
  object: z.literal("price_list"),
  version: PriceVersion.meta({ example: "2026-11" }),
  effective_from: Seconds,
  fees: Fees,
  models: z.array(ModelPrice).meta({ example: [] }),
});
export type PriceList = z.infer<typeof PriceList>;

/** The list in force comes first, then those with a future start. */
export const PriceLists = named("PriceLists", {
  object: z.literal("list"),
  data: z.array(PriceList).meta({ example: [{}] }),
});
export type PriceLists = z.infer<typeof PriceLists>;

/** The lines of a charge. */
export const CHARGE_LINES = [
  "rollout",
  "turns",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "judge_tokens",
  "scoring",
  "push",
  "storage",
] as const;
export type ChargeLine = (typeof CHARGE_LINES)[number];
/** Micro-dollars by line; lines with 0 are left out. */
export type ChargeLines = Readonly<Partial<Record<ChargeLine, number>>>;

/** The kind of a journal entry of the ledger. Kind, `source_id` and `period` identify a thing that is posted once. */
export const ENTRY_KINDS = [
  "rollout",
  "rescore",
  "push",
  "storage",
  "top_up",
  "refund",
  "dispute",
  "correction",
] as const;
export type EntryKind = (typeof ENTRY_KINDS)[number];

/**
 * `off`: nothing is charged. `prepaid`: runs continue while the balance lasts. `postpaid`: it may fall to
 * −`credit_limit`.
 */
export const BILLING_MODES = ["off", "prepaid", "postpaid"] as const;
export type BillingMode = (typeof BILLING_MODES)[number];
export const Billing = z.enum(BILLING_MODES);

/** Ten million dollars: a larger amount is surely a mistake. */
export const MOST_MICROS = 10_000_000_000_000;
/** How far a balance may fall below 0; null: without a limit. */
export const CreditLimit = z.int().min(0).max(MOST_MICROS).nullable();

/** Signed: a positive balance is credit of the organisation, a negative one is debt. */
export const SignedMicros = z.int();

export const LedgerEntry = named("LedgerEntry", {
  object: z.literal("ledger_entry"),
  number: Count.describe("from 1, without gaps, in the organisation").meta({ example: 12 }),
  kind: z.enum(ENTRY_KINDS).meta({ example: "storage" }),
  source_id: z.string().describe("what it is about").meta({ example: EXAMPLE.project }),
  period: z
    .string()
    .describe("distinguishes entries of the same kind and source, such as the day for storage; mostly empty")
    .meta({ example: "2026-11-22" }),
  posted_at: Seconds,
  project_id: MaybeText.meta({ example: EXAMPLE.project }),
  run_id: MaybeText,
  payer: MaybeText.describe("the key or person that started the run"),
  price_version: MaybeText.meta({ example: "2026-11" }),
  amount_micros: SignedMicros.describe("change of the balance").meta({ example: -260 }),
  lines: z
    .array(z.object({ account: z.string(), micros: SignedMicros }))
    .describe("both sides; they add up to 0")
    .meta({
      example: [
        { account: "balance", micros: -260 },
        { account: "revenue/storage", micros: 260 },
      ],
    }),
  note: MaybeText,
});
export type LedgerEntry = z.infer<typeof LedgerEntry>;
export const LedgerEntryList = listOf(LedgerEntry, "LedgerEntryList", "12");

export const Month = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, { error: "must be a month: 2026-11" })
  .meta({ example: "2026-11" });
