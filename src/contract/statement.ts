/** On the wire: what an organisation was charged and paid in a month, to the micro-dollar. */
import * as z from "zod";
import { SignedMicros } from "./money.ts";
import { Count, named, Seconds } from "./primitives.ts";

export const Month = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, { error: "must be a month: 2026-11" })
  .meta({ example: "2026-11" });

export const StatementView = named("Statement", {
  object: z.literal("statement"),
  month: Month.describe("of UTC, by the time at which entries were posted"),
  state: z.enum(["open", "closed"]).describe("closed: nothing is posted to it any more").meta({ example: "closed" }),
  opening_micros: SignedMicros.describe("the organisation's balance at the beginning of the month").meta({
    example: 5_000_000,
  }),
  closing_micros: SignedMicros.describe("the balance at the end of the month; of the open month, the balance now").meta(
    { example: 4_995_696 },
  ),
  lines: z
    .array(z.object({ account: z.string(), micros: SignedMicros }))
    .describe("what each account did to the balance: opening, and all of these, is closing")
    .meta({
      example: [
        { account: "revenue/rollout", micros: -2400 },
        { account: "revenue/scoring", micros: -800 },
        { account: "revenue/turns", micros: -1104 },
      ],
    }),
  entries: Count.describe("entries of the ledger that were posted in the month").meta({ example: 40 }),
  first_entry: Count.nullable().describe("number of the first of them; null without any").meta({ example: 1 }),
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
