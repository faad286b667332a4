/** The settings of the run. */
import { Link } from "@tanstack/react-router";
import type { RunView } from "../../../contract/run.ts";
import { countText, percentText } from "../../components/format.ts";
import { JsonView } from "../../components/json-view.tsx";
import { Shown } from "../../components/shown.tsx";

export function Settings({ run }: { readonly run: RunView }) {
  const { num_examples, rollouts_per_example, max_concurrent, min_scored, shuffle, seed, metadata, judges } = run;
  const { environment_args, limits, sampling } = run;
  const facts: readonly (readonly [string, React.ReactNode])[] = [
    ...(run.kind === "eval" ? [["Tasks", countText(num_examples)] as const] : []),
    ["Rollouts of each", countText(rollouts_per_example)],
    ["Concurrent", countText(max_concurrent)],
    ["Must be scored", percentText(min_scored)],
    ...(run.answer_cache === true ? [["Cache", "answers at temperature 0 are used again"] as const] : []),
    ["Order", `${shuffle ? "shuffled" : "as in the dataset"}, seed ${seed}`],
    ["Environment's code", <code key="digest">{run.environment.digest}</code>],
    ...Object.entries(judges).map(([name, { endpoint, model }]) => {
      return [`Judge ${name}`, <Judge key={name} endpoint={endpoint} model={model} />] as const;
    }),
    ...Object.entries(metadata).map(([name, value]) => [name, <Shown key={name} text={value} />] as const),
  ];
  return (
    <>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name} className="fact">
            <dt>
              <Shown text={name} />
            </dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h2>Arguments of the environment</h2>
      <JsonView value={environment_args} what="arguments" />
      <h2>Sampling</h2>
      <JsonView value={sampling} what="sampling" />
      <h2>Limits</h2>
      <JsonView value={limits} what="limits" />
    </>
  );
}

function Judge({ endpoint, model }: { readonly endpoint: string; readonly model: string }) {
  return (
    <>
      <Shown text={model} /> at{" "}
      <Link to="/endpoints/$id" params={{ id: endpoint }} search={{}}>
        <Shown text={endpoint} />
      </Link>
    </>
  );
}
