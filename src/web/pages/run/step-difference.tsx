/**
 * One step of a training against the step before it: how the reward changed, what else changed with it, and the tasks
 * of the step. The numbers of arrived rollouts come from the series; scores, tasks and tools from the rollouts of the
 * two batches.
 */
import { useQuery } from "@tanstack/react-query";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, percentText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { hasEnded } from "./progress.ts";
import { COUNTED, RolloutsLink } from "./rollout-links.tsx";
import type { RunSeries } from "./series.ts";
import { Causes } from "./step-causes.tsx";
import { factsOfStep, type StepFacts } from "./step-facts.ts";
import { MeasureTable, ScoreTable, TaskTable } from "./step-tables.tsx";
import { readStepTools } from "./step-tools.ts";
import { hasTools } from "./tools.tsx";
import "./step-difference.css";

/** The most rollouts of a step that are read, and how many in one request. */
const ROLLOUTS = 1000;
const PAGE = 500;
/** How often a step without a batch is read again while the run is in progress. */
const SHIPPED_MS = 5000;
const REWARD = "train/agg/all/reward";

interface StepDifferenceProps {
  readonly run: RunView;
  readonly series: RunSeries;
  /** One of the series' steps. */
  readonly step: number;
  readonly onStep: (step: number | null) => void;
}

export function StepDifference({ run, series, step, onStep }: StepDifferenceProps) {
  const at = series.steps.indexOf(step);
  const before = stepBefore(series, at);
  const [earlier, later] = [series.steps[at - 1], series.steps[at + 1]];
  return (
    <section className="step-difference" aria-labelledby="step-difference">
      <div className="row spread">
        <h2 id="step-difference">
          {before === null ? `Step ${countText(step)}` : `Step ${countText(step)} against step ${countText(before)}`}
        </h2>
        <div className="row">
          <button type="button" disabled={earlier === undefined} onClick={() => onStep(earlier ?? null)}>
            Step before
          </button>
          <button type="button" disabled={later === undefined} onClick={() => onStep(later ?? null)}>
            Next step
          </button>
          <RolloutsLink run={run.id} filter={stepFilter(step)}>
            All rollouts of step {countText(step)}
          </RolloutsLink>
          <button type="button" className="quiet" onClick={() => onStep(null)}>
            Close
          </button>
        </div>
      </div>
      <Headline series={series} step={step} before={before} />
      <Details run={run} series={series} step={step} before={before} />
    </section>
  );
}

const stepFilter = (step: number) => `step:${step} ${COUNTED}`;

/** The latest earlier step with a measured reward; else the step before; null for the first. */
function stepBefore(series: RunSeries, at: number): number | null {
  const reward = series.of(`${REWARD}/mean`).slice(0, Math.max(0, at));
  const measured = reward.findLastIndex((value) => value !== null);
  return series.steps[measured === -1 ? at - 1 : measured] ?? null;
}

interface StepsProps {
  readonly series: RunSeries;
  readonly step: number;
  readonly before: number | null;
}

/** The change of the mean reward in one sentence, and whether chance alone could explain it. */
function Headline({ series, step, before }: StepsProps) {
  const valueAt = (name: string, of: number) => series.of(name)[series.steps.indexOf(of)] ?? null;
  const now = valueAt(`${REWARD}/mean`, step);
  const then = before === null ? null : valueAt(`${REWARD}/mean`, before);
  if (now === null) return <p>No rollout with a reward arrived in this step.</p>;
  if (then === null || before === null) {
    return (
      <p>
        The mean reward is <b>{scoreText(now)}</b>. No earlier step has a reward.
      </p>
    );
  }
  const low = (of: number) => valueAt(`${REWARD}/ci95_low`, of);
  const high = (of: number) => valueAt(`${REWARD}/ci95_high`, of);
  const bounds = [low(step), high(step), low(before), high(before)];
  const [from, to, fromThen, toThen] = bounds;
  const isKnown = from != null && to != null && fromThen != null && toThen != null;
  const change = now - then;
  return (
    <p>
      The mean reward {change < 0 ? "fell" : change > 0 ? "rose" : "stayed the same"}
      {change !== 0 && (
        <>
          {" "}
          by <b className={change < 0 ? "worse" : "better"}>{scoreText(Math.abs(change))}</b>
        </>
      )}
      , from {scoreText(then)} in step {countText(before)} to {scoreText(now)} in step {countText(step)}.
      {isKnown && change !== 0 && (
        <span className="soft">
          {" "}
          {from <= toThen && fromThen <= to
            ? "The 95 % intervals of the two means overlap: this may be chance."
            : "The 95 % intervals of the two means do not overlap."}
        </span>
      )}
    </p>
  );
}

interface DetailsProps extends StepsProps {
  readonly run: RunView;
}

function Details({ run, series, step, before }: DetailsProps) {
  const now = useStepRows(run, step);
  const then = useStepRows(run, before);
  const tools = useStepTools(run, step, now.data);
  const toolsThen = useStepTools(run, before, then.data);
  const error = now.error ?? then.error ?? tools.error ?? toolsThen.error;
  const again = () => {
    for (const one of [now, then, tools, toolsThen]) if (one.error !== null) one.refetch().catch(reportError);
  };
  const facts = now.data && factsOfStep(now.data);
  const factsThen = then.data && factsOfStep(then.data);
  const both = { tools: tools.data, toolsThen: toolsThen.data };
  return (
    <>
      {error !== null && <ErrorNote error={error} onRetry={again} />}
      {facts === undefined && now.error === null && <Loading what="the rollouts of the step" />}
      {facts !== undefined && factsThen !== undefined && (
        <Causes run={run.id} before={factsThen} now={facts} {...both} hasTools={hasTools(run)} />
      )}
      <div className="columns">
        <MeasureTable series={series} step={step} before={before} />
        {facts !== undefined && facts.scores.size > 0 && (
          <ScoreTable now={facts} before={factsThen ?? null} steps={[before, step]} />
        )}
      </div>
      {facts !== undefined && facts.rollouts > 0 && (
        <>
          <BatchText facts={facts} step={step} />
          <TaskTable run={run.id} step={step} now={facts} before={factsThen ?? null} stepBefore={before} />
        </>
      )}
      {facts?.rollouts === 0 && <p>No rollout was shipped in this step yet.</p>}
    </>
  );
}

function BatchText({ facts, step }: { readonly facts: StepFacts; readonly step: number }) {
  const { rollouts, scored, reward, tasks } = facts;
  return (
    <p className="soft">
      The batch of step {countText(step)} has {countText(rollouts)} {rollouts === ROLLOUTS ? "or more " : ""}rollouts of{" "}
      {countText(tasks.length)} tasks; {countText(scored)} are scored ({percentText(scored / rollouts)}), their mean
      reward is {scoreText(reward)}. Rollouts that arrived and were not shipped are in no batch.
    </p>
  );
}

function useStepRows(run: RunView, step: number | null) {
  return useQuery({
    queryKey: ["run", run.id, "step-rollouts", step],
    queryFn: ({ signal }) => readRows(run.id, step ?? 0, signal),
    enabled: step !== null,
    // A batch does not change once it was shipped; before that it has no rollouts.
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: ({ state }) => state.data?.length === 0 && !hasEnded(run) && SHIPPED_MS,
  });
}

async function readRows(runId: string, step: number, signal: AbortSignal): Promise<readonly RolloutSummary[]> {
  const rows: RolloutSummary[] = [];
  const query = { filter: stepFilter(step), limit: PAGE };
  for (let after: string | undefined; rows.length < ROLLOUTS; ) {
    const page = await api.rollouts.list(runId, { ...query, after }, { signal });
    rows.push(...page.data);
    if (!page.has_more || page.last_id === null) break;
    after = page.last_id;
  }
  return rows;
}

function useStepTools(run: RunView, step: number | null, rows: readonly RolloutSummary[] | undefined) {
  return useQuery({
    queryKey: ["run", run.id, "step-tools", step, rows?.length],
    queryFn: ({ signal }) => readStepTools(rows ?? [], signal),
    enabled: step !== null && rows !== undefined && hasTools(run),
    staleTime: Number.POSITIVE_INFINITY,
  });
}
