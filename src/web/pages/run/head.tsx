/** The head of a run's page: its name, its status and its actions. */
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { Badge } from "../../components/badge.tsx";
import { costText, dollarsText, words } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { RunActions } from "./actions.tsx";
import { hasEnded } from "./progress.ts";
import type { Live } from "./use-run.ts";

const LIVE_TEXTS: Readonly<Record<Live, string>> = {
  no: "",
  live: "live",
  lost: "the event stream was lost; refreshing every few seconds",
};

export function RunHead({ run, live }: { readonly run: RunView; readonly live: Live }) {
  const { id, name, kind, status } = run;
  return (
    <header className="run-head">
      <div className="row spread">
        <h1>
          <Shown text={name ?? id} />
        </h1>
        <RunActions run={run} />
      </div>
      <p className="row">
        <Badge state={status} />
        <span>{kind}</span>
        <code>{id}</code>
        {live !== "no" && <span className="soft">{LIVE_TEXTS[live]}</span>}
        <Links run={run} />
      </p>
      <Why run={run} />
      <dl className="facts run-facts">
        <Facts run={run} />
      </dl>
    </header>
  );
}

/** Why it waits, or why it failed. */
function Why({ run: { error, status_reason, status } }: { readonly run: RunView }) {
  if (error !== null) {
    return (
      <div className="note bad" role="alert">
        <code>{error.code}</code>: <Shown text={error.message} most={2000} />
      </div>
    );
  }
  if (status_reason === null || (status_reason.state === "active" && status_reason.reason === null)) return null;
  return (
    <div className={status_reason.state === "active" ? "note" : "note warn"} role="status">
      {words(status_reason.state)}
      {status_reason.reason !== null && (
        <>
          : <Shown text={status_reason.reason} most={2000} />
        </>
      )}
      {status === "paused" && ". Nothing is dispatched until it is resumed."}
    </div>
  );
}

function Links({ run }: { readonly run: RunView }) {
  const { id, forked_from, rescored_from } = run;
  return (
    <>
      <Link to="/runs/$id/rollouts" params={{ id }} search={{}}>
        All rollouts
      </Link>
      {hasEnded(run) && (
        <Link to="/compare" search={{ runs: id } as never}>
          Compare
        </Link>
      )}
      {rescored_from !== null && (
        <Link to="/runs/$id" params={{ id: rescored_from }} search={{}}>
          Rescores another run
        </Link>
      )}
      {forked_from !== null && (
        <Link
          to="/rollouts/$id"
          params={{ id: forked_from.rollout_id }}
          search={{ turn: `${forked_from.turn + 1}` } as never}
        >
          Continues after turn {forked_from.turn + 1} of a rollout
        </Link>
      )}
    </>
  );
}

function Facts({ run }: { readonly run: RunView }) {
  const { environment, agent, model, dataset, seed, sampling, max_cost_micros, report, created_at, finished_at } = run;
  return (
    <>
      <dt>Environment</dt>
      <dd>
        <Link to="/environments/$id" params={{ id: environment.id }} search={{}}>
          <Shown text={`${environment.id}@${environment.version}`} />
        </Link>
      </dd>
      {agent !== null && (
        <>
          <dt>Agent</dt>
          <dd>
            <Shown text={agent.name} />
          </dd>
        </>
      )}
      <dt>Model</dt>
      <dd>
        <Shown text={model} /> <Place run={run} />
      </dd>
      {dataset !== null && (
        <>
          <dt>Dataset</dt>
          <dd>
            <Link to="/datasets/$id" params={{ id: dataset }} search={{}}>
              <Shown text={dataset} />
            </Link>
          </dd>
        </>
      )}
      <dt>Sampling</dt>
      <dd>
        <Shown text={Object.keys(sampling).length === 0 ? "the environment's" : printed(sampling)} />, order by seed{" "}
        {seed}
      </dd>
      <dt>Cost</dt>
      <dd>
        {costText(run.cost)}: policy {costOfRole(run.cost.policy_micros)}, judges {costOfRole(run.cost.judge_micros)},
        charged by the platform {dollarsText(run.cost.charged_micros)}
        {max_cost_micros !== null &&
          `; ${dollarsText(report.counted_micros ?? 0)} of its cap of ${dollarsText(max_cost_micros)} counted`}
      </dd>
      <dt>Started</dt>
      <dd>
        <Ago at={created_at} />
        {finished_at !== null && (
          <>
            , ended <Ago at={finished_at} />
          </>
        )}
      </dd>
    </>
  );
}

function costOfRole(micros: number | null): string {
  return micros === null ? "unknown" : dollarsText(micros);
}

function Place({ run: { endpoint, fleet } }: { readonly run: RunView }) {
  if (fleet !== null) {
    return (
      <>
        on fleet{" "}
        <Link to="/fleets/$id" params={{ id: fleet.id }} search={{}}>
          <Shown text={fleet.name ?? fleet.id} />
        </Link>
      </>
    );
  }
  if (endpoint === null) return null;
  return endpoint.name === null ? (
    <>
      at <Shown text={endpoint.base_url} />
    </>
  ) : (
    <>
      at endpoint{" "}
      <Link to="/endpoints/$id" params={{ id: endpoint.id }} search={{}}>
        <Shown text={endpoint.name} />
      </Link>
    </>
  );
}

function printed(value: Readonly<Record<string, unknown>>): string {
  return Object.entries(value)
    .map(([name, one]) => `${name} ${JSON.stringify(one)}`)
    .join(", ");
}
