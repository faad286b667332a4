/** The distribution of a number over a run's rollouts: first its minimum and maximum, then the counts between edges. */
import { parseMeasure } from "../../contract/filter.ts";
import { LIMITS } from "../../contract/limits.ts";
import { HISTOGRAM_FIELDS, type Histogram, type HistogramQuery } from "../../contract/rollout-list.ts";
import type { Scope } from "../../contract/scope.ts";
import type { BinCounts, Spread } from "../messages/list-wire.ts";
import { type Result, refuse } from "../messages/refusal.ts";
import type { ListAsk } from "../messages/rpc.ts";
import { beforeSlice, knownScores, openList, type SlicedRun, searchedFor, sliced } from "./list-rollouts.ts";
import { lostRun } from "./read-run.ts";
import { readTerms } from "./read-terms.ts";

export async function readHistogram(
  env: Env,
  scope: Scope,
  id: string,
  query: HistogramQuery,
): Promise<Result<Histogram>> {
  const run = await openList(env, scope, id);
  if (!run.ok) return run;
  const of = parseMeasure(query.of, HISTOGRAM_FIELDS);
  if (of === null) return refuse("invalid_request", `of: ${query.of} is not a numeric field of a rollout`, "of");
  const terms = await readTerms(run.value, query.filter);
  const scores = await knownScores(run.value, terms, of, "of");
  if (!scores.ok) return scores;
  const searched = await searchedFor(run.value, terms);
  const looked = await sliced(run.value, terms, of.kind);
  if (looked === null) return lostRun(id);
  const { rows } = looked.size;
  const spread = await spreadOver(looked, { terms, of, upto: null, slice: 0, rows });
  if (spread === null || searched === undefined) return lostRun(id);
  const edges = edgesOf(spread, query.bins);
  const most = LIMITS.histogramSteps;
  const after = query.after_step ?? Math.max(0, spread.last_step - most);
  const steps = query.by === "step" ? { after, most } : null;
  const inner = edges.slice(1, -1);
  const counts = await countOver(
    looked,
    { terms, of, upto: spread.upto, slice: 0, edges: inner, steps, rows },
    spread.slices,
  );
  if (counts === null) return lostRun(id);
  const { null: none, failed, in_flight } = counts;
  const bins = edges.slice(0, -1).map((from, at) => ({ from, to: edges[at + 1] ?? from, n: counts.bins[at] ?? 0 }));
  const values = bins.reduce((sum, { n }) => sum + n, 0);
  // Without values there are no bins, and none by step either.
  const by_step =
    steps === null ? null : counts.by_step.map((one) => ({ ...one, bins: one.bins.slice(0, bins.length) }));
  return {
    ok: true,
    value: {
      object: "histogram",
      of: query.of,
      bins,
      whole: spread.min !== null && spread.whole,
      counts: { values, null: none, failed, in_flight },
      by_step,
      steps_before: steps === null ? 0 : after,
      searched,
    },
  };
}

/** The minimum and maximum over all slices. */
async function spreadOver(run: SlicedRun, ask: ListAsk<"spread">): Promise<Spread | null> {
  const { object } = run;
  await beforeSlice(run);
  let all = await object.look("spread", ask);
  for (let slice = 1; all !== null && slice < all.slices; slice += 1) {
    await beforeSlice(run);
    const one: Spread | null = await object.look("spread", { ...ask, upto: all.upto, slice });
    if (one === null) return null;
    const [min, max] = [least([all.min, one.min], 1), least([all.max, one.max], -1)];
    all = { ...all, min, max, whole: all.whole && one.whole };
  }
  return all;
}

function least(values: readonly (number | null)[], sign: 1 | -1): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : sign * Math.min(...known.map((value) => sign * value));
}

async function countOver(run: SlicedRun, ask: ListAsk<"bins">, slices: number): Promise<BinCounts | null> {
  let all: BinCounts | null = null;
  for (let slice = 0; slice < slices; slice += 1) {
    await beforeSlice(run);
    const one: BinCounts | null = await run.object.look("bins", { ...ask, slice });
    if (one === null) return null;
    all = all === null ? one : together(all, one);
  }
  return all;
}

function together(one: BinCounts, other: BinCounts): BinCounts {
  const steps = new Map(one.by_step.map((step) => [step.step, step]));
  for (const step of other.by_step) {
    const known = steps.get(step.step);
    steps.set(step.step, known === undefined ? step : { step: step.step, ...summed(known, step) });
  }
  const by_step = [...steps.values()].sort((a, b) => a.step - b.step);
  return { ...summed(one, other), in_flight: one.in_flight + other.in_flight, by_step };
}

type Sums = Pick<BinCounts, "bins" | "null" | "failed">;
function summed(one: Sums, other: Sums): Sums {
  const bins = one.bins.map((n, at) => n + (other.bins[at] ?? 0));
  return { bins, null: one.null + other.null, failed: one.failed + other.failed };
}

/** Edges of the bins, including the outer ones. Whole numbers get bins of whole width. Empty if there are no values. */
export function edgesOf({ min, max, whole }: Pick<Spread, "min" | "max" | "whole">, bins: number): number[] {
  if (min === null || max === null) return [];
  if (whole && max - min >= 1) {
    const width = Math.ceil((max - min + 1) / bins);
    const count = Math.ceil((max - min + 1) / width);
    return Array.from({ length: count + 1 }, (_, at) => min + at * width);
  }
  if (min === max) return [min, max];
  const inner = Array.from({ length: bins - 1 }, (_, at) => min + ((max - min) * (at + 1)) / bins);
  const apart = inner.filter((edge, at) => edge > (inner[at - 1] ?? min) && edge < max);
  return [min, ...apart, max];
}
