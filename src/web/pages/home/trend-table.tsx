/** A row for each environment and model: the line of its scores, the last score, and the last run. */
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { Badge } from "../../components/badge.tsx";
import { countText, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Ago } from "../../components/time.tsx";
import { MOST_RUNS } from "../compare/asked.ts";
import { RewardText } from "../run/reward-text.tsx";
import { changeText, type Trend, trendsOf } from "./trends.ts";

export function Trends({ runs }: { readonly runs: readonly RunView[] }) {
  const trends = trendsOf(runs);
  return (
    <section>
      <h2>Evals by environment and model</h2>
      {trends.length === 0 && <p className="soft">No evals yet.</p>}
      {trends.length > 0 && (
        <Scroll label="Evals by environment and model">
          <table className="trends">
            <thead>
              <tr>
                <th scope="col">Environment</th>
                <th scope="col">Model</th>
                <th scope="col">Scores</th>
                <th scope="col" className="numeric">
                  Last score, 95 %
                </th>
                <th scope="col" className="numeric">
                  Change
                </th>
                <th scope="col">Last run</th>
                <th scope="col" className="numeric">
                  Runs
                </th>
              </tr>
            </thead>
            {[...Map.groupBy(trends, ({ environment }) => environment)].map(([environment, of]) => (
              <tbody key={environment}>
                {of.map((trend, at) => (
                  <tr key={trend.model}>
                    {at === 0 && (
                      <th scope="rowgroup" rowSpan={of.length}>
                        <Link to="/environments/$id" params={{ id: environment }} search={{}}>
                          <Shown text={environment} most={80} />
                        </Link>
                        <CompareModels trends={of} />
                      </th>
                    )}
                    <Cells trend={trend} />
                  </tr>
                ))}
              </tbody>
            ))}
          </table>
        </Scroll>
      )}
    </section>
  );
}

function Cells({ trend }: { readonly trend: Trend }) {
  const { environment, model, scores, latest, scored, before, runs } = trend;
  const { id, name, status, created_at } = latest;
  return (
    <>
      <td>
        <Shown text={model} most={80} />
      </td>
      <td>{scores.length === 0 ? <span className="soft">no complete run</span> : <Scores scores={scores} />}</td>
      <td className="numeric">{scored !== null && <RewardText reward={scored.report.reward} />}</td>
      <td className="numeric">
        {scored !== null && before !== null && (
          <Link to="/compare" search={{ runs: `${scored.id},${before.id}`, baseline: before.id } as never}>
            {changeText(scores)}
          </Link>
        )}
      </td>
      <td>
        <Link to="/runs/$id" params={{ id }} search={{}}>
          <Shown text={name ?? id} most={60} />
        </Link>{" "}
        {status !== "completed" && <Badge state={status} />}
        <span className="second soft">
          <Ago at={created_at} />
        </span>
      </td>
      <td className="numeric">
        <Link to="/runs" search={{ environment, model } as never}>
          {countText(runs)}
        </Link>
      </td>
    </>
  );
}

/** Compares the newest whole run of each model; the first one is the baseline. */
function CompareModels({ trends }: { readonly trends: readonly Trend[] }) {
  const runs = trends.flatMap(({ scored }) => (scored === null ? [] : [scored.id])).slice(0, MOST_RUNS);
  if (runs.length < 2) return null;
  return (
    <span className="second">
      <Link to="/compare" search={{ runs: runs.join(","), baseline: runs.at(-1) } as never}>
        Compare {countText(runs.length)} models
      </Link>
    </span>
  );
}

function Scores({ scores }: { readonly scores: readonly number[] }) {
  const [first, last] = [scoreText(scores[0]), scoreText(scores.at(-1))];
  const text = scores.length === 1 ? `one score, ${last}` : `${scores.length} scores, from ${first} to ${last}`;
  return <Sparkline values={scores} text={text} />;
}
