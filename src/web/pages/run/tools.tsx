/** The tools that a run's rollouts called: how many calls there were, how many failed, and their results. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { printName } from "../../../contract/filter.ts";
import type { RunView } from "../../../contract/run.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, percentText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { hasEnded } from "./progress.ts";
import { COUNTED, FailingLink, RolloutsLink } from "./rollout-links.tsx";
import { type AnswerForm, ToolCounts, type ToolTally } from "./tool-tally.ts";

/**
 * The most rollouts that are read, in the order they ended; and the number of characters after which no further one is
 * read.
 */
const ROLLOUTS = 1000;
const CHARACTERS = 30_000_000;
/** How many forms of results are listed per tool. */
const LISTED = 5;

/** Whether the rollouts have tools: environments with tools have a metric that counts calls. */
export function hasTools({ report: { metrics, members = {} } }: Pick<RunView, "report">): boolean {
  const all = [metrics, ...Object.values(members).map((member) => member.metrics)];
  return all.some((of) => Object.hasOwn(of, "total_tool_calls"));
}

export function ToolsTab({ run }: { readonly run: RunView }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["run", run.id, "tools", hasEnded(run)],
    queryFn: async ({ signal }) => {
      const counts = new ToolCounts();
      for await (const row of api.runs.results(run.id, {}, { signal })) {
        counts.add(row);
        if (counts.rollouts >= ROLLOUTS || counts.characters > CHARACTERS) break;
      }
      const { rollouts, recorded, judged } = counts;
      return { tallies: counts.tallies(), rollouts, recorded, judged };
    },
    staleTime: hasEnded(run) ? Number.POSITIVE_INFINITY : 10_000,
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what="the tool calls and their results" />;
  const metrics = Object.keys(run.report.metrics);
  return (
    <>
      <MostFailures tallies={data.tallies} />
      <ToolTable run={run.id} tallies={data.tallies} metrics={metrics} />
      <p className="soft">
        Counted in the first {countText(data.rollouts)} ended rollouts. {sourceOf(data)}
      </p>
      {data.tallies.map((tally) => (
        <Answers key={tally.name} tally={tally} />
      ))}
    </>
  );
}

/** The tool that failed most, in one sentence; the tallies come in that order. */
function MostFailures({ tallies }: { readonly tallies: readonly ToolTally[] }) {
  const [first] = tallies;
  if (first === undefined) return null;
  if (first.failed === 0) return <p role="status">No tool call failed.</p>;
  const { name, failed, calls, answers } = first;
  const example = answers.find((answer) => answer.failed);
  return (
    <p role="status">
      The tool{" "}
      <b>
        <Shown text={name} />
      </b>{" "}
      failed most: {countText(failed)} of its {countText(calls)} calls, {percentText(failed / calls)}
      {example !== undefined && (
        <>
          , most often with <q>{<Shown text={example.text} most={120} />}</q>
        </>
      )}
      .
    </p>
  );
}

/** The basis of the counts of failed calls. */
function sourceOf({ recorded, judged }: Pick<ToolCounts, "recorded" | "judged">): string {
  if (judged === 0) return "Whether a call failed was recorded when it was answered.";
  if (recorded === 0) return "Whether a call failed was not recorded: this is guessed from the answer's text.";
  return `Whether a call failed was recorded of ${countText(recorded)} answers; for the other ${countText(judged)} it is guessed from their text.`;
}

interface ToolTableProps {
  readonly run: string;
  readonly tallies: readonly ToolTally[];
  readonly metrics: readonly string[];
}

function ToolTable({ run, tallies, metrics }: ToolTableProps) {
  if (tallies.length === 0) return <p>No tool calls.</p>;
  return (
    <Scroll label="Table of tools">
      <table>
        <thead>
          <tr>
            <th scope="col">Tool</th>
            {["Calls", "Failed", "Of its calls", "In rollouts", "Not answered"].map((name) => (
              <th key={name} scope="col" className="numeric">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tallies.map(({ name, calls, failed, rollouts, unanswered }) => (
            <tr key={name}>
              <th scope="row">
                <Shown text={name} />
              </th>
              <td className="numeric">
                <CallsLink run={run} name={name} calls={calls} metrics={metrics} />
              </td>
              <td className="numeric">{countText(failed)}</td>
              <td className="numeric">{percentText(failed / calls)}</td>
              <td className="numeric">
                <FailingLink run={run} rollouts={rollouts} />
              </td>
              <td className="numeric">{countText(unanswered)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

interface CallsLinkProps {
  readonly run: string;
  readonly name: string;
  readonly calls: number;
  readonly metrics: readonly string[];
}

/** Links to the rollouts that called the tool, if a metric counts its calls; those with the most calls first. */
function CallsLink({ run, name, calls, metrics }: CallsLinkProps) {
  const metric = `${name}_calls`;
  if (!metrics.includes(metric)) return countText(calls);
  return (
    <RolloutsLink run={run} filter={`${printName(metric)}>0 ${COUNTED}`} sort={`-${printName(metric)}`}>
      {countText(calls)}
    </RolloutsLink>
  );
}

function Answers({ tally: { name, answers } }: { readonly tally: ToolTally }) {
  if (answers.length === 0) return null;
  return (
    <section aria-label={`Answers of ${name}`}>
      <h3>
        What <Shown text={name} /> answered
      </h3>
      <ul className="plain">
        {answers.slice(0, LISTED).map((answer) => (
          <li key={`${answer.rollout} ${answer.turn} ${answer.text}`}>
            <Answer answer={answer} />
          </li>
        ))}
      </ul>
      {answers.length > LISTED && (
        <p className="soft">{countText(answers.length - LISTED)} more kinds of answers are not listed.</p>
      )}
    </section>
  );
}

function Answer({ answer: { text, failed, recorded, n, rollout, turn } }: { readonly answer: AnswerForm }) {
  return (
    <>
      {countText(n)} × <Shown text={text} />{" "}
      {failed && <Badge state={recorded ? "failed" : "reads like an error"} tone="bad" />}{" "}
      <Link to="/rollouts/$id" params={{ id: rollout }} search={{ turn: String(turn + 1) } as never}>
        Examples
      </Link>
    </>
  );
}
