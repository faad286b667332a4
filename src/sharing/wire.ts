/** Links with which anybody can read the report of one run, until they expire or are revoked. */
import * as z from "zod";
import {
  BuiltEnvironment,
  EXAMPLE,
  listOf,
  MaybeText,
  named,
  namedInput,
  RunId,
  Seconds,
} from "../contract/primitives.ts";
import { RunReport } from "../contract/report.ts";
import { Histogram } from "../contract/rollout-list.ts";
import { RUN_KINDS, RUN_STATUSES, RunCounts } from "../contract/run.ts";

const DAY_S = 86_400;

export const ReportLinkRequest = namedInput("ReportLinkRequest", {
  expires_in_s: z
    .int()
    .min(60)
    .max(90 * DAY_S)
    .default(7 * DAY_S)
    .describe("seconds until it expires; at most 90 days"),
});
export type ReportLinkRequest = z.output<typeof ReportLinkRequest>;
export type ReportLinkRequestInput = z.input<typeof ReportLinkRequest>;

export const ReportLinkView = named("ReportLink", {
  object: z.literal("report_link"),
  id: z.string().meta({ example: EXAMPLE.reportLink }),
  run_id: RunId,
  created_by: z.string().describe("a key or a person").meta({ example: EXAMPLE.key }),
  created_at: Seconds,
  expires_at: Seconds,
});
export type ReportLinkView = z.infer<typeof ReportLinkView>;
export const ReportLinkList = listOf(ReportLinkView, "ReportLinkList", EXAMPLE.reportLink);

export const CreatedReportLink = ReportLinkView.extend({
  url: MaybeText.describe("the link to send, shown only here; null in the reply to a repeat").meta({
    example: `https://rollcall.example/shared#${EXAMPLE.reportToken}`,
  }),
}).meta({ id: "CreatedReportLink" });
export type CreatedReportLink = z.infer<typeof CreatedReportLink>;

/** A run as the holder of a link sees it: no prompts, completions, addresses, keys or metadata. */
export const SharedReport = named("SharedReport", {
  object: z.literal("shared_report"),
  name: MaybeText.meta({ example: "nightly main" }),
  kind: z.enum(RUN_KINDS),
  status: z.enum(RUN_STATUSES).meta({ example: "completed" }),
  environment: BuiltEnvironment,
  model: z.string().meta({ example: "qwen3-4b" }),
  counts: RunCounts,
  report: RunReport.describe("without amounts: prices, costs, charges, counts against a cap"),
  histogram: Histogram.nullable().describe("of the rewards; null if the run can no longer be read"),
  created_at: Seconds,
  finished_at: Seconds.nullable(),
  expires_at: Seconds.describe("when the link expires"),
});
export type SharedReport = z.infer<typeof SharedReport>;
