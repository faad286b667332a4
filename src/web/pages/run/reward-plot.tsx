/**
 * The reward of a training by step, with the 95 % interval of its mean. Rewards that are all 0 or 1 are named as a share.
 * A click or Enter compares the step with the step before it.
 */
import { useQuery } from "@tanstack/react-query";
import type { RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { Plot } from "../../components/plot.tsx";
import { hasEnded } from "./progress.ts";
import { rewardByStep } from "./reward-by-step.tsx";
import { type Band, bandOf, isBinary, rewardSeries, SMOOTHING, smoothingOf } from "./reward-series.ts";
import type { RunSeries } from "./series.ts";
import { StepDifference } from "./step-difference.tsx";

const BANDS: Readonly<Record<NonNullable<Band> | "none", string>> = {
  interval: "The band is the 95 % interval of the mean, over the groups of the step.",
  percentiles: "The band is the 10th to the 90th percentile of the rewards.",
  none: "",
};

export function RewardPlot({ run, series }: { readonly run: RunView; readonly series: RunSeries }) {
  const [search, change] = useAddress();
  const { data: histogram } = useQuery(rewardByStep(run.id, !hasEnded(run)));
  const chosen = smoothingOf(search["smooth"]);
  const isShare = histogram !== undefined && isBinary(histogram);
  const step = series.steps.find((one) => String(one) === search["step"]);
  const openStep = (to: number | null) => change({ step: to === null ? undefined : String(to) }, { replace: false });
  return (
    <section aria-label="Reward by step">
      <Plot
        title={isShare ? "Share of rollouts with reward 1, by step" : "Mean reward by step"}
        x="step"
        at={series.steps}
        height={260}
        series={rewardSeries(series, Number(chosen), isShare, run.max_reward)}
        onPick={openStep}
        {...(step !== undefined && { picked: step })}
      />
      <div className="row">
        <SmoothingChoice value={chosen} onChange={(smoothing) => change({ smooth: smoothing })} />
        <span className="soft">
          {BANDS[bandOf(series, isShare) ?? "none"]} Click a step, or press Enter on it, to see what changed.
        </span>
      </div>
      {step !== undefined && <StepDifference key={step} run={run} series={series} step={step} onStep={openStep} />}
    </section>
  );
}

interface SmoothingChoiceProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function SmoothingChoice({ value, onChange }: SmoothingChoiceProps) {
  return (
    <label className="row">
      Smoothing
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {SMOOTHING.map((one) => (
          <option key={one} value={one}>
            {one === "0" ? "none" : one}
          </option>
        ))}
      </select>
    </label>
  );
}
