/** The progress of a training run: its status, its series by step, the fate of its groups, its weights. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import type { TrainingView } from "../../../contract/training-view.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, NOTHING, numberText, percentText, scoreText, sum, words } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { Stat, Stats } from "../../components/stat.tsx";
import { Ago } from "../../components/time.tsx";
import { CompareTrainings } from "./compare-trainings.tsx";
import { RewardByStep } from "./reward-by-step.tsx";
import { RewardPlot } from "./reward-plot.tsx";
import { type RunSeries, seriesOf } from "./series.ts";
import { stepsQuery } from "./steps-query.ts";
import { TrainingPlots } from "./training-plots.tsx";

export function TrainingOverview({ run }: { readonly run: RunView }) {
  const { data, error, refetch } = useQuery({ ...stepsQuery(run), select: seriesOf });
  const { training } = run;
  if (training === null) return <Loading what="the training" />;
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="its series" />}
      {data !== undefined && <RewardPlot run={run} series={data} />}
      <CompareTrainings run={run} />
      <Standing run={run} training={training} series={data} />
      {data !== undefined && <TrainingPlots series={data} />}
      <RewardByStep runId={run.id} live={run.finished_at === null} />
      <div className="columns">
        <Weights training={training} />
        <Pipeline training={training} />
      </div>
      <Members training={training} />
      <Evals training={training} />
    </>
  );
}

interface StandingProps {
  readonly run: RunView;
  readonly training: TrainingView;
  readonly series: RunSeries | undefined;
}

function Standing({ run, training, series }: StandingProps) {
  const reward = series?.of("train/agg/all/reward/mean") ?? [];
  const last = reward.findLastIndex((value) => value !== null);
  const { trainer } = training;
  return (
    <Stats>
      <Stat
        name="Steps trained"
        value={`${countText(training.steps_trained)} of ${countText(training.max_steps)}`}
        behind={`${countText(training.batches.shipped)} batches shipped, ${countText(training.batches.acked)} acknowledged`}
      />
      <Stat
        name="Reward of the latest step"
        value={scoreText(reward[last])}
        behind={
          (last === -1
            ? "no step has arrived yet"
            : `step ${series?.steps[last]}; ${scoreText(reward[0])} at the first`) +
          (run.max_reward === undefined ? "" : `; best possible ${numberText(run.max_reward)}`)
        }
      />
      <Stat
        name="Lag"
        value={`${countText(training.max_lag)} ${training.max_lag === 1 ? "version" : "versions"}`}
        behind={`largest shipped; ${countText(training.max_off_policy_steps)} allowed; ${countText(training.lead)} batches ahead`}
      />
      <Stat
        name="Trainer waited for batches"
        value={percentText(trainer?.waiting_for_batch)}
        behind={
          trainer === null
            ? "no trainer has registered"
            : `of its time; not training ${percentText(trainer.not_training)}${trainer.waiting_by === null ? "" : `, by the ${trainer.waiting_by}'s clock`}`
        }
      />
      <Stat
        name="Rows for training"
        value={countText(training.samples.clean + training.samples.forked + training.samples.realigned)}
        behind={`${countText(run.report.turns)} turns; ${countText(sum(training.samples.untrainable))} scored rollouts gave none`}
      />
    </Stats>
  );
}

function Weights({ training }: { readonly training: TrainingView }) {
  const { applied } = training;
  return (
    <section>
      <h2>Weights</h2>
      <Facts>
        <Fact name="New groups are sampled with">version {training.policy_version}</Fact>
        <Fact name="Published">version {training.published}</Fact>
        {Object.entries(applied.by_replica).map(([replica, version]) => (
          <Fact key={replica} name={replica}>
            version {version}
            {version < training.published && " (behind)"}
          </Fact>
        ))}
        {training.trainer !== null && (
          <>
            <Fact name="Trainer">
              <Shown text={`${training.trainer.kind} ${training.trainer.id}`} />, epoch {training.trainer.epoch}
            </Fact>
            <Fact name="Last seen">
              <Ago at={training.trainer.last_seen_at} />
            </Fact>
          </>
        )}
      </Facts>
    </section>
  );
}

function Pipeline({ training }: { readonly training: TrainingView }) {
  const { groups, batches, buffered, samples } = training;
  const dropped = Object.entries(groups.dropped).filter(([, n]) => n > 0);
  const untrainable = Object.entries(samples.untrainable).filter(([, n]) => n > 0);
  return (
    <section>
      <h2>From groups to batches</h2>
      <Facts>
        <Fact name="Groups open">{countText(groups.open)}</Fact>
        <Fact name="Groups waiting for a batch">
          {countText(groups.buffered)} ({countText(buffered.tokens)} tokens)
        </Fact>
        <Fact name="Groups shipped">{countText(groups.shipped)}</Fact>
        <Fact name="Groups dropped">
          {dropped.length === 0 ? "none" : dropped.map(([why, n]) => `${countText(n)} ${words(why)}`).join(", ")}
        </Fact>
        <Fact name="Batches">
          {countText(batches.ready)} ready, {countText(batches.leased)} with the trainer, {countText(batches.acked)}{" "}
          acknowledged, {countText(batches.dead)} given up, {countText(batches.voided)} voided
        </Fact>
        <Fact name="Rollouts without rows">
          {untrainable.length === 0
            ? "none"
            : untrainable.map(([why, n]) => `${countText(n)} ${words(why)}`).join(", ")}
        </Fact>
        {training.reference !== undefined && (
          <Fact name="Reference logprobs">
            <Shown text={training.reference.model} />
          </Fact>
        )}
        {training.sample_filters?.map(({ kind, enforce }) => (
          <Fact key={kind} name={`Filter ${words(kind)}`}>
            {countText(samples.flagged?.[kind] ?? 0)} found, {countText(samples.filtered?.[kind] ?? 0)} left out
            {!enforce && " (only counted)"}
          </Fact>
        ))}
      </Facts>
    </section>
  );
}

function Members({ training: { members = [] } }: { readonly training: TrainingView }) {
  if (members.length === 0) return null;
  return (
    <section>
      <h2>Members of the group of environments</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col">Ratio</th>
            <th scope="col">Rollouts per task</th>
            <th scope="col">Advantage</th>
            <th scope="col">Groups opened</th>
          </tr>
        </thead>
        <tbody>
          {members.map(({ name, ratio, group_size, advantage, groups_opened }) => (
            <tr key={name}>
              <th scope="row">
                <Shown text={name} />
              </th>
              <td>{ratio === null ? "by rows" : numberText(ratio)}</td>
              <td>{countText(group_size)}</td>
              <td>{advantage.name}</td>
              <td>{groups_opened === null ? "–" : countText(groups_opened)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Evals({ training }: { readonly training: TrainingView }) {
  if (training.evals.length === 0) return null;
  return (
    <section>
      <h2>Evals</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Eval</th>
            <th scope="col">Weights</th>
            <th scope="col">Run</th>
            <th scope="col">Reward</th>
          </tr>
        </thead>
        <tbody>
          {training.evals.map(({ name, step, run_id, policy_version }) => (
            <tr key={run_id}>
              <th scope="row">{step}</th>
              <td>
                <Shown text={name} />
              </td>
              <td>version {policy_version}</td>
              <td>
                <Link to="/runs/$id" params={{ id: run_id }} search={{}}>
                  <code>{run_id}</code>
                </Link>
              </td>
              <td>
                <EvalReward runId={run_id} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function EvalReward({ runId }: { readonly runId: string }) {
  const { data } = useQuery({ queryKey: ["run", runId], queryFn: ({ signal }) => api.runs.get(runId, { signal }) });
  if (data === undefined) return NOTHING;
  const { mean, ci95, n_rollouts } = data.report.reward;
  const interval = ci95 === null ? "" : `, ${scoreText(ci95[0])} to ${scoreText(ci95[1])}`;
  return `${scoreText(mean)}${interval}, of ${countText(n_rollouts)} scored rollouts`;
}
