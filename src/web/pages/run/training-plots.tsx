/** The charts of a training run by step, except that of the reward. A chart without any measurement is left out. */
import { useAddress } from "../../address.ts";
import { Plot } from "../../components/plot.tsx";
import type { RunSeries } from "./series.ts";

interface ChartOf {
  readonly title: string;
  /** The series by name, each with its label. */
  readonly of: Readonly<Record<string, string>>;
}

const ALL = "train/agg/all";

const CHARTS: readonly ChartOf[] = [
  {
    title: "Share of rollouts cut off by a limit, and failed",
    of: { [`${ALL}/is_truncated`]: "cut off", [`${ALL}/has_error`]: "failed" },
  },
  {
    title: "Share of groups, by the rewards of their rollouts",
    of: {
      [`${ALL}/solved_none`]: "every reward 0 or less",
      [`${ALL}/solved_some`]: "some reward above 0, not all 1 or more",
      [`${ALL}/solved_all`]: "every reward 1 or more",
    },
  },
  {
    title: "Sampled tokens per rollout",
    of: { [`${ALL}/num_output_tokens/mean`]: "mean" },
  },
  {
    title: "Turns per rollout",
    of: { [`${ALL}/num_turns/mean`]: "mean" },
  },
  {
    title: "Lag of the trained rollouts, in versions of the weights",
    of: { "off_policy/mean": "mean", "off_policy/max": "largest" },
  },
  {
    title: "KL divergence of sampling and trained weights, in nats",
    of: { "trainer/kl": "KL", "trainer/mismatch_kl": "mismatch KL" },
  },
  {
    title: "Time of a step, in seconds",
    of: { "time/step": "whole step", "trainer/train_s": "training", "trainer/wait_s": "waiting for the batch" },
  },
  { title: "Tokens per batch", of: { "batch/tokens": "tokens" } },
];

export function TrainingPlots({ series }: { readonly series: RunSeries }) {
  return (
    <section>
      <h2>Other measures by step</h2>
      <div className="columns">
        {CHARTS.map((chart) => (
          <Chart key={chart.title} chart={chart} series={series} />
        ))}
        <AnySeries series={series} />
      </div>
    </section>
  );
}

function Chart({ chart: { title, of }, series }: { readonly chart: ChartOf; readonly series: RunSeries }) {
  const shown = Object.entries(of)
    .map(([name, label]) => ({ name: label, values: series.of(name) }))
    .filter(({ values }) => values.some((value) => value !== null));
  if (shown.length === 0) return null;
  return <Plot title={title} x="step" at={series.steps} height={180} series={shown} />;
}

/** A series that the reader chooses. */
function AnySeries({ series }: { readonly series: RunSeries }) {
  const [search, change] = useAddress();
  const named = series.names.find((name) => name === search["series"]) ?? series.names.at(-1);
  if (named === undefined) return null;
  return (
    <div>
      <label className="row">
        Any other
        <select value={named} onChange={(event) => change({ series: event.target.value })}>
          {series.names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <Plot
        title={named}
        x="step"
        at={series.steps}
        height={180}
        series={[{ name: named, values: series.of(named) }]}
      />
    </div>
  );
}
