/** The results of the project's runs of an environment, for each model, with everything that was not scored. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment } from "react";
import {
  type Comparable,
  comparableResults,
  countOpen,
  placeText,
  type Ranked,
  settingsOf,
} from "../../../contract/comparable-results.ts";
import type { EnvironmentResults, ModelResults } from "../../../contract/environment-results.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, NOTHING, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { Ago } from "../../components/time.tsx";
import { RewardText } from "../run/reward-text.tsx";

interface ResultsProps {
  /** The environment, without a version. */
  readonly name: string;
  /** The version whose results come first. */
  readonly version: string;
}

export function Results({ name, version }: ResultsProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ["environment", name, "results"],
    queryFn: ({ signal }) => api.environments.results(name, { signal }),
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what="results" />;
  const tables = comparableResults(data.rows, version);
  return (
    <>
      <p>
        Results of this project. Those of other projects and organisations are private, and are not shown.{" "}
        <Counted {...data} />
      </p>
      {tables.length === 0 && <p>No eval of this environment yet.</p>}
      {tables.map((table) => (
        <Table {...table} key={table.key} />
      ))}
      {tables.length > 0 && <Explained />}
    </>
  );
}

function Counted({ runs, has_more, left_out: { training, forked, rescored } }: EnvironmentResults) {
  const others = [
    [training, "training"],
    [forked, "forked"],
    [rescored, "rescored"],
  ] as const;
  const named = others.filter(([n]) => n > 0).map(([n, what]) => `${countText(n)} ${what}`);
  return (
    <span className="soft">
      {has_more ? `The newest ${countText(runs)} runs count.` : `All ${countText(runs)} runs count.`}
      {named.length > 0 && ` Of these, ${named.join(", ")} runs are not in the tables.`}
    </span>
  );
}

function Table(table: Comparable) {
  const { rows } = table;
  const [first] = rows;
  if (first === undefined) return null;
  const { version, dataset, inline } = first.row;
  const name = `Version ${version}`;
  const given = settingsOf(table);
  return (
    <>
      <h2>
        {name}
        {given.map((text) => (
          <Fragment key={text}>
            , <Shown text={text} most={200} />
          </Fragment>
        ))}
        {dataset !== null && (
          <>
            , dataset{" "}
            <Link to="/datasets/$id" params={{ id: dataset }} search={{}}>
              {dataset}
            </Link>
          </>
        )}
      </h2>
      {inline && <p className="note warn">The rows came with each run, so these evals may have different tasks.</p>}
      <Scroll label={`${name}: ${given.join(", ")} ${dataset ?? ""}`}>
        <table className="results">
          <thead>
            <tr>
              <th scope="col">Place</th>
              <th scope="col">Model</th>
              <th scope="col">Mean reward, 95 % interval</th>
              {["Tasks", "Scored", "Failed", "Unscored", "Cancelled", "Not ended"].map((header) => (
                <th key={header} scope="col" className="numeric">
                  {header}
                </th>
              ))}
              <th scope="col">Evals</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((ranked) => (
              <Row key={ranked.row.latest[0]?.id} {...ranked} />
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function Row({ row, places }: Ranked) {
  const { model, weights_of, measured, rollouts } = row;
  const { scored, failed, unscored, cancelled } = rollouts;
  return (
    <tr>
      <td>{placeText(places) ?? NOTHING}</td>
      <th scope="row">
        <Shown text={model} />
        {weights_of !== null && (
          <span className="soft">
            {" "}
            trained by{" "}
            <Link to="/runs/$id" params={{ id: weights_of }} search={{}}>
              {weights_of}
            </Link>
          </span>
        )}
      </th>
      <td className="mean">
        {measured === null ? (
          <span className="soft">no score</span>
        ) : (
          <Link to="/runs/$id" params={{ id: measured.id }} search={{}}>
            <RewardText reward={measured.reward} />
          </Link>
        )}
      </td>
      <td className="numeric">{measured === null ? NOTHING : countText(measured.reward.n_tasks)}</td>
      {[scored, failed, unscored, cancelled, countOpen(rollouts)].map((n, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the columns never move
        <td key={at} className="numeric">
          {countText(n)}
        </td>
      ))}
      <td>
        <Evals {...row} />
      </td>
    </tr>
  );
}

function Evals({ evals, latest }: ModelResults) {
  const others = evals - latest.length;
  return (
    <ul className="evals">
      {latest.map(({ id, name, created_at, mean, status }) => (
        <li key={id}>
          <Link to="/runs/$id" params={{ id }} search={{}}>
            <Shown text={name ?? id} most={40} />
          </Link>{" "}
          <span className="soft">
            {status}, {mean === null ? "no score" : scoreText(mean)}, <Ago at={created_at} />
          </span>
        </li>
      ))}
      {others > 0 && <li className="soft">and {countText(others)} older</li>}
    </ul>
  );
}

function Explained() {
  return (
    <p className="soft">
      The mean is that of the ended eval with the most scored tasks; the counts are of all evals in the row. Rollouts
      that failed or were not scored are not in the mean: many of them make it doubtful. A place such as “1 to 3” means
      that intervals overlap, or that one is unknown, so the order of these models may be chance.{" "}
      <Link to="/compare">Compare</Link> two runs task by task to see more.
    </p>
  );
}
