/** The columns of the table of runs. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import type { Column } from "../../components/data-table.tsx";
import { costText, countText, dollarsText, NOTHING } from "../../components/format.ts";
import { OutcomeBar } from "../../components/outcome-bar.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { endedOf, hasEnded, leftText, progressOf, secondsLeft } from "../run/progress.ts";
import { RewardText } from "../run/reward-text.tsx";

/** `mark` marks a run for the comparison, or unmarks it. */
export function runColumns(marked: readonly string[], mark: (id: string) => void): readonly Column<RunView>[] {
  return [
    {
      id: "marked",
      header: "Mark",
      width: 8,
      cell: ({ id, name }) => (
        <input
          type="checkbox"
          aria-label={`compare ${name ?? id}`}
          checked={marked.includes(id)}
          onChange={() => mark(id)}
        />
      ),
    },
    ...COLUMNS,
  ];
}

const COLUMNS: readonly Column<RunView>[] = [
  { id: "name", header: "Run", cell: (run) => <Name {...run} /> },
  { id: "state", header: "State", width: 14, cell: (run) => <State {...run} /> },
  { id: "progress", header: "Progress", width: 20, cell: (run) => <RunProgress run={run} /> },
  {
    id: "reward",
    header: "Reward, 95 %",
    width: 15,
    numeric: true,
    cell: ({ report }) => <RewardText reward={report.reward} />,
  },
  { id: "cost", header: "Cost / cap", width: 12, numeric: true, cell: (run) => <CostOf {...run} /> },
  { id: "lag", header: "Lag", width: 8, numeric: true, cell: (run) => <Lag run={run} /> },
  { id: "started", header: "Begun", width: 12, cell: ({ created_at }) => <Ago at={created_at} /> },
];

function Name({ id, name, kind, environment, model }: RunView) {
  return (
    <>
      <Link to="/runs/$id" params={{ id }} search={{}}>
        <Shown text={name ?? id} />
      </Link>
      <span className="second soft">
        {kind} · <Shown text={environment.id} /> · <Shown text={model} />
      </span>
    </>
  );
}

/** The progress by outcome, and while the run is running the estimated time left. */
function RunProgress({ run }: { readonly run: RunView }) {
  const watched = useTraining(run);
  const progress = progressOf(watched) ?? { done: endedOf(run.counts), all: run.counts.planned, unit: "rollouts" };
  const left = secondsLeft(watched, Date.now() / 1000);
  return (
    <>
      <OutcomeBar counts={run.counts} />
      <span className="second soft">
        {countText(progress.done)} of {countText(progress.all)}
        {progress.unit === "steps" && " steps"}
        {left !== null && `, ${leftText(left)} left`}
      </span>
    </>
  );
}

function State({ status, status_reason }: RunView) {
  const waits = status_reason !== null && status_reason.state !== "active" && status === "running";
  return (
    <span title={status_reason?.reason ?? undefined}>
      {waits ? <Badge state={status_reason.state} tone="warn" /> : <Badge state={status} />}
    </span>
  );
}

function CostOf({ cost, max_cost_micros }: RunView) {
  return (
    <>
      {costText(cost)}
      {max_cost_micros !== null && <span className="soft"> / {dollarsText(max_cost_micros)}</span>}
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

function Lag({ run }: { readonly run: RunView }) {
  const { training } = useTraining(run);
  if (training === null) return NOTHING;
  const { max_lag, max_off_policy_steps } = training;
  return (
    <span title={`maximum versions between the sampling and the trained weights; ${max_off_policy_steps} allowed`}>
      {countText(max_lag)} of {countText(max_off_policy_steps)}
    </span>
  );
}
