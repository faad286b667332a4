/** The columns of the table of runs. The head of a group has a name, a number of runs and their scores. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import type { Column } from "../../components/data-table.tsx";
import { costText, countText, dollarsText, scoreText } from "../../components/format.ts";
import { OutcomeBar } from "../../components/outcome-bar.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { endedOf, hasEnded, leftText, progressOf, secondsLeft } from "../run/progress.ts";
import { type RunRow, scoresOf } from "./group-rows.ts";
import { Score } from "./score.tsx";

interface ColumnsOptions {
  readonly marked: readonly string[];
  /** Marks a run for the comparison, or unmarks it. */
  readonly mark: (id: string) => void;
  /** Whether model and environment have columns of their own. */
  readonly isWide: boolean;
}

export function runColumns({ marked, mark, isWide }: ColumnsOptions): readonly Column<RunRow>[] {
  const check: RunColumn = {
    id: "marked",
    header: "Mark",
    width: 6,
    cell: ({ id, name }) => (
      <input
        type="checkbox"
        aria-label={`compare ${name ?? id}`}
        checked={marked.includes(id)}
        onChange={() => mark(id)}
      />
    ),
  };
  const played = isWide ? [MODEL, ENVIRONMENT] : [MODEL_AND_ENVIRONMENT];
  return [check, NAME, ...played, ...REST].map(({ cell, groupCell, ...column }) => ({
    ...column,
    cell: (row: RunRow) => (row.is === "run" ? cell(row.run) : groupCell?.(row)),
  }));
}

interface RunColumn extends Omit<Column<RunView>, "cell"> {
  readonly cell: Column<RunView>["cell"];
  /** In the head of a group; absent: nothing. */
  readonly groupCell?: (group: Extract<RunRow, { readonly is: "group" }>) => React.ReactNode;
}

const NAME: RunColumn = {
  ...{ id: "name", header: "Run", sort: "name", least: 20, grow: 3 },
  cell: (run) => <Name {...run} />,
  groupCell: ({ name, runs }) => (
    <b className="run-name">
      <Shown text={name} /> <span className="soft">({countText(runs.length)})</span>
    </b>
  ),
};

const MODEL: RunColumn = {
  ...{ id: "model", header: "Model", least: 14 },
  cell: ({ model }) => <Shown text={model} />,
};
const ENVIRONMENT: RunColumn = {
  ...{ id: "environment", header: "Environment", least: 14 },
  cell: ({ environment }) => <Shown text={environment.id} />,
};
const MODEL_AND_ENVIRONMENT: RunColumn = {
  ...{ id: "model", header: "Model", least: 15 },
  cell: ({ model, environment }) => (
    <>
      <Shown text={model} />
      <span className="second soft">
        <Shown text={environment.id} />
      </span>
    </>
  ),
};

const REST: readonly RunColumn[] = [
  {
    ...{ id: "reward", header: "Reward, 95 %", sort: "reward", width: 16, numeric: true },
    cell: (run) => <Score run={run} />,
    groupCell: ({ runs }) => <GroupScores runs={runs} />,
  },
  { id: "state", header: "State", width: 14, cell: (run) => <State {...run} /> },
  { id: "progress", header: "Progress", width: 13, cell: (run) => <RunProgress run={run} /> },
  {
    ...{ id: "cost", header: "Cost / cap", sort: "cost", width: 11, numeric: true },
    cell: (run) => <CostOf {...run} />,
  },
  { id: "started", header: "Begun", sort: "created", width: 11, cell: ({ created_at }) => <Ago at={created_at} /> },
];

/** The most pairs of metadata in a row. */
const PAIRS = 3;

function Name({ id, name, kind, metadata }: RunView) {
  const pairs = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
  return (
    <>
      <span className="run-name" title={name ?? id}>
        <Link to="/runs/$id" params={{ id }} search={{}}>
          <Shown text={name ?? id} />
        </Link>
      </span>
      <span className="second soft">
        {kind === "training" && "training "}
        {pairs.slice(0, PAIRS).map((pair) => (
          <Link
            key={pair}
            className="pair"
            to="/runs"
            title={`Only runs with ${pair}`}
            search={((before: object) => ({ ...before, metadata: pair })) as never}
          >
            <Shown text={pair} most={40} />
          </Link>
        ))}
        {pairs.length > PAIRS && `and ${pairs.length - PAIRS} more`}
      </span>
    </>
  );
}

function GroupScores({ runs }: { readonly runs: readonly RunView[] }) {
  const scores = scoresOf(runs);
  if (scores === null) return <span className="soft">no complete run</span>;
  return (
    <>
      latest {scoreText(scores.latest)}
      <span className="second soft">best {scoreText(scores.best)}</span>
    </>
  );
}

/** The progress by outcome, and while the run is running the estimated time left. */
function RunProgress({ run }: { readonly run: RunView }) {
  const watched = useTraining(run);
  const progress = progressOf(watched) ?? { done: endedOf(run.counts), all: run.counts.planned, unit: "rollouts" };
  const left = secondsLeft(watched, Date.now() / 1000);
  const { training } = watched;
  return (
    <>
      <OutcomeBar counts={run.counts} />
      <span className="second soft">
        {countText(progress.done)} of {countText(progress.all)}
        {progress.unit === "steps" && " steps"}
        {left !== null && `, ${leftText(left)} left`}
      </span>
      {training !== null && (
        <span
          className="second soft"
          title={`maximum versions between the sampling and the trained weights; ${training.max_off_policy_steps} allowed`}
        >
          lag {countText(training.max_lag)} of {countText(training.max_off_policy_steps)}
        </span>
      )}
    </>
  );
}

function State({ status, status_reason, error }: RunView) {
  const waits = status_reason !== null && status_reason.state !== "active" && status === "running";
  return (
    <span title={error?.message ?? status_reason?.reason ?? undefined}>
      {waits ? <Badge state={status_reason.state} tone="warn" /> : <Badge state={status} />}
    </span>
  );
}

function CostOf({ cost, max_cost_micros }: RunView) {
  return (
    <>
      {costText(cost)}
      {max_cost_micros !== null && <span className="second soft">of {dollarsText(max_cost_micros)}</span>}
    </>
  );
}

/**
 * A list does not include the progress of a training, so it is read for each visible row; for an ended run only once.
 */
function useTraining(run: RunView): RunView {
  const { data } = useQuery({
    queryKey: ["run", run.id],
    queryFn: ({ signal }) => api.runs.get(run.id, { signal }),
    enabled: run.kind === "training",
    staleTime: hasEnded(run) ? Number.POSITIVE_INFINITY : 3000,
    refetchInterval: hasEnded(run) ? false : 5000,
  });
  return run.kind === "training" && data !== undefined ? { ...run, training: data.training } : run;
}
