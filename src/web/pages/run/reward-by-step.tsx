/**
 * The distribution of rewards in each step, as a table of squares: a column per step, a row per bin. A square has its
 * count in words, and opens its rollouts.
 */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Fragment } from "react";
import type { Histogram } from "../../../contract/rollout-list.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, numberText } from "../../components/format.ts";
import { binFilter } from "./rollout-links.tsx";
import "./reward-by-step.css";

const BINS = 10;
/** How many steps are drawn: the latest ones. */
const STEPS = 120;
const REFETCH_MS = 10_000;

/** The query of the distribution of rewards in each step. `live`: the run is in progress. */
export function rewardByStep(runId: string, live: boolean) {
  return queryOptions({
    queryKey: ["run", runId, "reward-by-step"],
    queryFn: ({ signal }) => api.runs.histogram(runId, { of: "reward", bins: BINS, by: "step" }, { signal }),
    refetchInterval: live ? REFETCH_MS : false,
  });
}

export function RewardByStep({ runId, live }: { readonly runId: string; readonly live: boolean }) {
  const { data, error, refetch } = useQuery(rewardByStep(runId, live));
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data?.by_step == null || data.by_step.length === 0) return null;
  return <Squares runId={runId} histogram={data} steps={data.by_step.slice(-STEPS)} />;
}

interface SquaresProps {
  readonly runId: string;
  readonly histogram: Histogram;
  readonly steps: NonNullable<Histogram["by_step"]>;
}

function Squares({ runId, histogram, steps }: SquaresProps) {
  const navigate = useNavigate();
  const most = Math.max(1, ...steps.flatMap(({ bins }) => bins));
  const bins = histogram.bins.map((bin, index) => ({ ...bin, index })).reverse();
  const left = histogram.steps_before + (histogram.by_step?.length ?? 0) - steps.length;
  const open = (step: number, bin: (typeof bins)[number]) => {
    const filter = `step:${step} ${binFilter(histogram, bin)}`;
    navigate({ to: "/runs/$id/rollouts", params: { id: runId }, search: { filter } } as never).catch(reportError);
  };
  return (
    <figure className="squares">
      <figcaption>
        Rewards of each step's rollouts
        {left > 0 && `, the last ${countText(steps.length)} steps; ${countText(left)} earlier ones`}
      </figcaption>
      <div className="scroll">
        <div
          className="grid"
          style={{ gridTemplateColumns: `max-content repeat(${steps.length}, minmax(10px, 28px))` }}
        >
          {bins.map((bin) => (
            <Fragment key={bin.from}>
              <span className="soft numeric">{numberText(bin.from)}</span>
              {steps.map(({ step, bins: counts }) => {
                const n = counts[bin.index] ?? 0;
                const text = `step ${step}, ${numberText(bin.from)} to ${numberText(bin.to)}: ${countText(n)}`;
                return (
                  <button
                    key={step}
                    type="button"
                    title={text}
                    aria-label={text}
                    disabled={n === 0}
                    onClick={() => open(step, bin)}
                    style={{ opacity: n === 0 ? 1 : 0.25 + (0.75 * n) / most }}
                  />
                );
              })}
            </Fragment>
          ))}
        </div>
      </div>
      <p className="soft">
        Steps {steps[0]?.step} to {steps.at(-1)?.step}. Without a reward in them:{" "}
        {countText(steps.reduce((all, step) => all + step.null, 0))}; failed in them:{" "}
        {countText(steps.reduce((all, { failed }) => all + failed, 0))}.
      </p>
    </figure>
  );
}
