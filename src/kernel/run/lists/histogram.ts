/**
 * The distribution of a number over a run's rollouts, one slice per call: first its minimum and maximum, then how many
 * fall between the edges chosen by the caller. Only current attempts count. Both passes cover the same ends (`upto`).
 */

import type { Measure } from "../../../contract/filter.ts";
import type { HistogramField } from "../../../contract/rollout-list.ts";
import type { SpreadQuery } from "../../messages/list-wire.ts";
import type { ListAnswer, ListAsk } from "../../messages/rpc.ts";
import { stopsAll } from "../control.ts";
import { Bound, conditionOf, numberIn } from "./conditions.ts";
import type { Listed } from "./listed.ts";
import { sliceIn, slicesOf } from "./rollouts.ts";
import { makeTexts } from "./texts.ts";

const NONE = { min: null, max: null, whole: true };

export function spreadOf(listed: Listed, ask: ListAsk<"spread">): ListAnswer<"spread"> {
  const { store, sql } = listed;
  const upto = ask.upto ?? store.head().finished;
  const bound = new Bound();
  const rows = rowsOf(listed, { ...ask, upto }, bound);
  const found = sql
    .exec<{ min: number | null; max: number | null; whole: number | null }>(
      `select min(value) as min, max(value) as max, min(value = cast(value as integer)) as whole from (${rows})`,
      ...bound.values,
    )
    .toArray();
  const { min, max, whole } = found[0] ?? NONE;
  const steps = sql.exec<{ last: number | null }>("select max(step) as last from train_groups").one();
  return { min, max, whole: whole !== 0, upto, slices: slicesOf(store, ask), last_step: steps.last ?? 0 };
}

type Counted = { step: number | null; bin: number; n: number };
/** Bin numbers of rollouts without the number. */
const [IN_FLIGHT, FAILED, NULL] = [-3, -2, -1];

export function binCounts(listed: Listed, ask: ListAsk<"bins">): ListAnswer<"bins"> {
  const { edges, steps } = ask;
  const bound = new Bound();
  const rows = rowsOf(listed, ask, bound);
  const below = edges.map((edge, at) => `when value < ${bound.add(edge)} then ${at}`);
  const bin = `case when not ended then ${IN_FLIGHT} when value is null and outcome = 'failed' then ${FAILED}
    when value is null then ${NULL} ${below.join(" ")} else ${edges.length} end`;
  const step = steps === null ? "null" : "step";
  const counted = listed.sql
    .exec<Counted>(
      `select ${step} as step, ${bin} as bin, count(*) as n from (${rows}) group by 1, 2 order by 1, 2`,
      ...bound.values,
    )
    .toArray();
  return { ...countsOf(counted, edges.length + 1), by_step: byStep(counted, edges.length + 1, steps) };
}

function byStep(counted: readonly Counted[], bins: number, asked: ListAsk<"bins">["steps"]) {
  if (asked === null) return [];
  const steps = [...new Set(counted.map(({ step }) => step))].filter((step): step is number => {
    return step !== null && step > asked.after && step <= asked.after + asked.most;
  });
  return steps.map((step) => {
    const { in_flight: _, ...counts } = countsOf(
      counted.filter((one) => one.step === step),
      bins,
    );
    return { step, ...counts };
  });
}

function countsOf(counted: readonly Counted[], bins: number) {
  const sum = (bin: number) => counted.reduce((all, one) => all + (one.bin === bin ? one.n : 0), 0);
  return {
    bins: Array.from({ length: bins }, (_, bin) => sum(bin)),
    null: sum(NULL),
    failed: sum(FAILED),
    in_flight: sum(IN_FLIGHT),
  };
}

/** The value and the outcome of the slice's current rollouts that match. */
function rowsOf({ store, sql }: Listed, ask: SpreadQuery & { readonly upto: number }, bound: Bound): string {
  const { terms, of, upto } = ask;
  makeTexts(sql, terms);
  const ended = `ifnull(r.finish_seq <= ${bound.add(upto)}, 0)`;
  const condition = conditionOf(terms, bound, stopsAll(store.head()));
  return `select case when ${ended} then ${measured(of, bound)} end as value, ${ended} as ended, r.outcome as outcome, g.step as step
    from rollouts r left join train_groups g on g.group_index = r.group_index
    where ${sliceIn(ask, bound)} and r.superseded_by is null and ${condition}`;
}

/** Durations are in seconds, as in the API. */
function measured(of: Measure<HistogramField>, bound: Bound): string {
  const value = numberIn(of, bound);
  return of.kind === "field" && of.field === "duration" ? `(${value}) / 1000.0` : value;
}
