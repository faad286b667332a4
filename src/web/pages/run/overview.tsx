/** The result of a run: its report, and the counts behind every number. */
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { countText, NOTHING, numberText, percentText, scoreText, sum } from "../../components/format.ts";
import { OutcomeBar } from "../../components/outcome-bar.tsx";
import { Stat, Stats } from "../../components/stat.tsx";
import { useFrozen } from "../../frozen.ts";
import { Agreement } from "./agreement.tsx";
import { CostByRole, LatencyByRole } from "./costs.tsx";
import { Members, MetricTable, PassTable } from "./metrics.tsx";
import { Outcomes } from "./outcomes.tsx";
import { hasEnded, leftText, progressOf, secondsLeft } from "./progress.ts";
import { CountLink } from "./rollout-links.tsx";
import { RunHistogram } from "./run-histogram.tsx";

export function EvalOverview({ run }: { readonly run: RunView }) {
  return (
    <>
      {!hasEnded(run) && <UnderWay run={run} />}
      <Numbers run={run} />
      <OutcomeBar counts={run.counts} legend />
      <div className="columns">
        <section aria-labelledby="spread">
          <h2 id="spread">Distribution</h2>
          <RunHistogram run={run} />
        </section>
        <section aria-labelledby="outcomes">
          <h2 id="outcomes">Outcomes</h2>
          <Outcomes run={run} />
        </section>
      </div>
      <MetricTable run={run.id} metrics={run.report.metrics} />
      <Agreement run={run.id} />
      <PassTable report={run.report} />
      <Members run={run} />
      <div className="columns">
        <CostByRole run={run} />
        <LatencyByRole run={run} />
      </div>
    </>
  );
}

function UnderWay({ run }: { readonly run: RunView }) {
  const { counts, id } = run;
  const progress = progressOf(run);
  const left = secondsLeft(run, Date.now() / 1000);
  return (
    <section className="under-way" aria-label="Progress">
      {progress !== null && (
        <>
          <progress value={progress.done} max={Math.max(1, progress.all)} aria-label="ended so far" />
          <p>
            {countText(progress.done)} of {countText(progress.all)} {progress.unit}
            {left !== null && `, ${leftText(left)} left`};{" "}
            <CountLink run={id} n={counts.in_flight} what="in flight" filter="-status:done" />,{" "}
            {countText(counts.pending)} not started
          </p>
        </>
      )}
    </section>
  );
}

/** The share of planned rollouts with a score from which on the mean is shown as that of the whole run. */
const WHOLE = 0.9;

interface NumbersProps {
  /** Without a status: a run that has ended. */
  readonly run: Pick<RunView, "id" | "counts" | "report" | "max_reward"> & Partial<Pick<RunView, "status">>;
}

export function Numbers({ run }: NumbersProps) {
  const { id, counts, report } = run;
  const { reward } = report;
  const isOver = counts.in_flight === 0 && (run.status === undefined || hasEnded({ status: run.status }));
  const isPartial = isOver && reward.mean !== null && (shareOf(counts.scored, counts.planned) ?? 1) < WHOLE;
  return (
    <Stats>
      <Stat
        name={isPartial ? "Mean reward of a part" : "Mean reward"}
        value={isPartial ? <span className="partial">{scoreText(reward.mean)}</span> : scoreText(reward.mean)}
        behind={
          <>
            {isPartial && (
              <span className="line warned">
                Only {percentText(shareOf(counts.scored, counts.planned))} of the rollouts have a score: the mean of all
                may be different.
              </span>
            )}
            <Behind run={run} />
          </>
        }
      />
      <Stat
        name="Scored"
        value={<CountLink run={id} n={counts.scored} what="" filter="outcome:scored" />}
        behind={`of ${countText(counts.planned)} planned, ${percentText(shareOf(counts.scored, counts.planned))}`}
      />
      <Stat
        name="Unscored"
        value={<Total run={id} outcome="unscored" counts={counts.unscored} />}
        behind="finished, but no score was produced"
      />
      <Stat
        name="Failed"
        value={<Total run={id} outcome="failed" counts={counts.failed} />}
        behind="ended with an error"
      />
      <Stat
        name="Cut off"
        value={<CountLink run={id} n={reward.n_truncated} what="" filter="truncated:true" />}
        behind="rollouts that a limit ended, or with a truncated answer; scored as they are"
      />
      <Stat
        name="Turns"
        value={countText(report.turns)}
        behind={`answered; calls sent to the model: ${countText(report.calls)}`}
      />
    </Stats>
  );
}

function shareOf(n: number, all: number): number | null {
  return all === 0 ? null : n / all;
}

interface TotalProps {
  readonly run: string;
  readonly outcome: "unscored" | "failed";
  readonly counts: Readonly<Record<string, number>>;
}

function Total({ run, outcome, counts }: TotalProps) {
  return <CountLink run={run} n={sum(counts)} what="" filter={`outcome:${outcome}`} />;
}

/** The basis of the mean. */
function Behind({ run }: { readonly run: Pick<RunView, "id" | "report" | "max_reward"> }) {
  const { mean, se, ci95, wilson95, range, n_tasks, n_rollouts } = run.report.reward;
  const frozen = useFrozen();
  if (mean === null) return <>nothing scored</>;
  const between = (interval: readonly [number, number]) => `${scoreText(interval[0])} to ${scoreText(interval[1])}`;
  return (
    <>
      {run.max_reward !== undefined && <span className="line">best possible {numberText(run.max_reward)}</span>}
      {ci95 !== null && <span className="line">95 %: {between(ci95)} (Student t)</span>}
      {wilson95 != null && <span className="line">95 %: {between(wilson95)} (Wilson)</span>}
      <span className="line">
        standard error {se === null ? NOTHING : scoreText(se)}
        {range != null && `; rewards from ${scoreText(range[0])} to ${scoreText(range[1])}`}
      </span>
      <span className="line">
        mean of {countText(n_tasks)}{" "}
        {frozen ? (
          "tasks"
        ) : (
          <Link to="/runs/$id" params={{ id: run.id }} search={{ tab: "groups" } as never}>
            tasks
          </Link>
        )}
        , {countText(n_rollouts)} rollouts
      </span>
    </>
  );
}
