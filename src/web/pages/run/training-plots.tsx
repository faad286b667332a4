/**
 * The charts of a training run by step. Smoothed lines are drawn next to the measured ones, and are labelled as
 * smoothed.
 */
import { useNavigate } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { Plot } from "../../components/plot.tsx";
import type { Series } from "../../components/plot-point.ts";
import { type RunSeries, smooth } from "./series.ts";

/** The weights of the past that a reader may choose. */
const SMOOTHING = ["0", "0.6", "0.8", "0.9", "0.95", "0.99"] as const;
/** What each of these series counts: groups with a scored rollout. */
const SOLVED = {
  "train/agg/all/solved_none": "every reward 0 or less",
  "train/agg/all/solved_some": "some reward above 0, not all 1 or more",
  "train/agg/all/solved_all": "every reward 1 or more",
};

interface TrainingPlotsProps {
  readonly run: Pick<RunView, "id" | "max_reward">;
  readonly series: RunSeries;
}

export function TrainingPlots({ run, series }: TrainingPlotsProps) {
  const [search, change] = useAddress();
  const navigate = useNavigate();
  const chosen = SMOOTHING.find((one) => one === search["smooth"]) ?? "0.6";
  const openStep = (step: number) => {
    const to = { to: "/runs/$id/rollouts", params: { id: run.id }, search: { filter: `step:${step}` } } as const;
    navigate(to as never).catch(reportError);
  };
  return (
    <section>
      <h2>By step</h2>
      <label className="row">
        Smoothing of the reward
        <select value={chosen} onChange={(event) => change({ smooth: event.target.value })}>
          {SMOOTHING.map((one) => (
            <option key={one} value={one}>
              {one === "0" ? "none" : one}
            </option>
          ))}
        </select>
      </label>
      <Plot
        title="Reward of the arrived rollouts: mean, and 10th to 90th percentile. Click or press Enter to open a step's rollouts"
        x="step"
        at={series.steps}
        height={280}
        series={rewardSeries(series, Number(chosen), run.max_reward)}
        onPick={openStep}
      />
      <div className="columns">
        <Chart
          title="Lag of shipped rollouts, in versions"
          series={series}
          names={["off_policy/mean", "off_policy/max"]}
        />
        <Chart
          title="KL between the sampling and the trained weights"
          series={series}
          names={["trainer/kl", "trainer/mismatch_kl"]}
        />
        <Chart
          title="Seconds: per step, training, waiting for the batch"
          series={series}
          names={["time/step", "trainer/train_s", "trainer/wait_s"]}
        />
        <Chart
          title="Tokens: per batch, and sampled per rollout on average"
          series={series}
          names={["batch/tokens", "train/agg/all/num_output_tokens/mean"]}
        />
        <Chart
          title="Shares of groups by the rewards of their rollouts"
          series={series}
          names={Object.keys(SOLVED)}
          labels={SOLVED}
        />
        <Chart
          title="Shares of rollouts that were cut off by a limit, and that failed"
          series={series}
          names={["train/agg/all/is_truncated", "train/agg/all/has_error"]}
        />
        <AnySeries series={series} />
      </div>
    </section>
  );
}

function rewardSeries(series: RunSeries, weight: number, best: number | undefined): readonly Series[] {
  const mean = series.of("train/agg/all/reward/mean");
  const low = series.of("train/agg/all/reward/p10");
  const high = series.of("train/agg/all/reward/p90");
  const evals = series.names.filter((name) => /^eval\/.*\/reward$/.test(name));
  const measured = { name: "mean of the step", values: mean, low, high };
  const others = evals.map((name) => ({
    name: `held out: ${name.split("/").slice(1, -1).join("/")}`,
    values: series.of(name),
  }));
  const smoothed = weight === 0 ? [] : [{ name: `smoothed by ${weight}`, values: smooth(mean, weight) }];
  const level = best === undefined ? [] : [{ name: "best possible", values: series.steps.map(() => best) }];
  return [measured, ...smoothed, ...others, ...level];
}

interface ChartProps {
  readonly title: string;
  readonly series: RunSeries;
  readonly names: readonly string[];
  /** Labels that are shown in place of the series' own names. */
  readonly labels?: Readonly<Record<string, string>>;
}

function Chart({ title, series, names, labels = {} }: ChartProps) {
  const shown = names.filter((name) => series.names.includes(name));
  return (
    <Plot
      title={title}
      x="step"
      at={series.steps}
      height={180}
      series={shown.map((name) => ({ name: labels[name] ?? name, values: series.of(name) }))}
    />
  );
}

/** A series that the reader chooses. */
function AnySeries({ series }: { readonly series: RunSeries }) {
  const [search, change] = useAddress();
  const named = series.names.find((name) => name === search["series"]) ?? "trainer/loss";
  return (
    <div>
      <label className="row">
        Any other
        <select value={named} onChange={(event) => change({ series: event.target.value })}>
          {!series.names.includes(named) && <option>{named}</option>}
          {series.names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Chart title={named} series={series} names={[named]} />
    </div>
  );
}
