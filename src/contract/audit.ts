/**
 * The audit of a run: it compares four records of the run, each kept by another part of the platform. `counters` are
 * kept while the run goes; `run_rows` are counted again from the run's rows; `d1` is the copy that lists of runs are
 * read from; `r2` holds the trajectories.
 */
import * as z from "zod";
import { Count, named, RolloutId, RunId, Seconds } from "./primitives.ts";
import { RunCounts } from "./run.ts";

/** The rules that may be broken. */
export const AUDIT_RULES = [
  "object_missing",
  "accounting_law",
  "counters_match_rows",
  "ends_are_numbered",
  "segments_cover_ends",
  "one_attempt_counts",
  "ends_in_time",
  "d1_run_matches",
  "r2_has_every_object",
  "r2_object_matches",
] as const;
export type AuditRule = (typeof AUDIT_RULES)[number];

const ByOutcome = RunCounts.pick({ scored: true, unscored: true, failed: true, cancelled: true });
export type OutcomeCounts = z.infer<typeof ByOutcome>;

export const AuditViolation = z.object({
  rule: z.enum(AUDIT_RULES),
  detail: z.string().describe("both values, and the object they belong to"),
});
export type AuditViolation = z.infer<typeof AuditViolation>;

export const RunAudit = named("RunAudit", {
  object: z.literal("audit"),
  run_id: RunId,
  holds: z.boolean().describe("true when nothing differs"),
  as_of: Seconds.meta({ example: 1_792_000_060 }),
  counts: RunCounts,
  sources: z.object({
    counters: RunCounts,
    run_rows: RunCounts,
    d1: RunCounts.extend({
      current: z.boolean().describe("false while newer counts of the run are not written there yet"),
    }).meta({ example: { scored: 2, current: true } }),
    r2: z.object({
      segments: Count,
      rollouts: Count.describe("whose trajectories are in segments"),
      trajectories: Count.describe("large ones that are in no segment yet"),
    }),
  }),
  notes: z.array(z.string()).describe("notes that are not violations"),
  violations: z.array(AuditViolation).meta({
    example: [{ rule: "d1_run_matches", detail: "scored: 2, not 1" }],
  }),
});
export type RunAudit = z.infer<typeof RunAudit>;

/** The rules of the accounting law that these counts break. Pure arithmetic on one record. */
export function brokenLaw(counts: RunCounts): AuditViolation[] {
  const { planned, pending, dispatched, in_flight } = counts;
  const ended = endedOf(counts);
  const broken: AuditViolation[] = [];
  if (planned !== pending + dispatched) {
    broken.push(law(`planned ${planned} is not pending ${pending} + dispatched ${dispatched}`));
  }
  if (dispatched !== in_flight + ended) {
    broken.push(law(`dispatched ${dispatched} is not in flight ${in_flight} + ended ${ended}`));
  }
  return broken;
}

/** Where two records that should be equal differ: `scored: 3, not 2`. A name that one of them lacks counts as 0. */
export function differences(
  here: Readonly<Record<string, unknown>>,
  there: Readonly<Record<string, unknown>>,
): string[] {
  const names = [...new Set([...Object.keys(here), ...Object.keys(there)])].sort();
  return names.flatMap((name) => {
    const [one, other] = [JSON.stringify(here[name] ?? 0), JSON.stringify(there[name] ?? 0)];
    return one === other ? [] : [`${name}: ${one}, not ${other}`];
  });
}

/** Counts as one flat record, so that they can be compared name by name: `failed.provider`. */
export function flatCounts(counts: OutcomeCounts | RunCounts): Record<string, number> {
  const flat: Record<string, number> = {};
  for (const [name, value] of Object.entries(counts)) {
    if (typeof value === "number") flat[name] = value;
    else for (const [reason, count] of Object.entries(value)) flat[`${name}.${reason}`] = count;
  }
  return flat;
}

/** Counts by outcome from rows of `outcome, reason, n`. */
export function countOutcomes(
  rows: Iterable<{ outcome: string | null; reason: string | null; n: number }>,
): OutcomeCounts {
  const counts = { scored: 0, unscored: {}, failed: {}, cancelled: {} } as {
    scored: number;
  } & Record<"unscored" | "failed" | "cancelled", Record<string, number>>;
  for (const { outcome, reason, n } of rows) {
    if (outcome === "scored") counts.scored += n;
    if (outcome !== "unscored" && outcome !== "failed" && outcome !== "cancelled") continue;
    const name = reason ?? "platform";
    counts[outcome][name] = (counts[outcome][name] ?? 0) + n;
  }
  return counts;
}

function endedOf({ scored, unscored, failed, cancelled }: OutcomeCounts): number {
  const by = [unscored, failed, cancelled].flatMap((counts) => Object.values(counts));
  return by.reduce((sum, count) => sum + count, scored);
}

function law(detail: string): AuditViolation {
  return { rule: "accounting_law", detail };
}

const AuditedValue = z.union([z.number(), z.string()]).nullable();

/** A slice of a run's rollouts, each charge computed again from the stored trajectory. */
export const ChargeAudit = named("ChargeAudit", {
  object: z.literal("charge_audit"),
  run_id: RunId,
  checked: Count.describe("ended rollouts in this slice").meta({ example: 2 }),
  charged_micros: Count.describe("their charge, computed from their trajectories").meta({ example: 160 }),
  unsettled: Count.describe("of them, those not yet in the ledger"),
  differences: z
    .array(
      z.object({
        rollout_id: RolloutId,
        what: z.string().describe("where it differs: the run's row or the ledger's entry, and in which line"),
        expected: AuditedValue,
        actual: AuditedValue,
      }),
    )
    .describe("the first 100")
    .meta({ example: [] }),
  next: Count.nullable().describe("`after` of the next slice; null after the last").meta({ example: null }),
});
export type ChargeAudit = z.infer<typeof ChargeAudit>;
