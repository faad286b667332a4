/** The tables of a step against the step before it: measures of arrived rollouts, scores, and tasks. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { countText, NOTHING, numberText, percentText, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { TaskName } from "../../components/task-name.tsx";
import type { RunSeries } from "./series.ts";
import { type StepFacts, scoreChanges, taskMeans } from "./step-facts.ts";

/** How many tasks are listed at first. */
const LISTED = 10;

interface Measure {
  readonly name: string;
  readonly title: string;
  readonly text: (value: number | null) => string;
}

const ALL = "train/agg/all";

const MEASURES: readonly Measure[] = [
  { name: `${ALL}/reward/mean`, title: "Mean reward", text: scoreText },
  { name: "train/agg/effective/reward/mean", title: "Mean reward of the batch", text: scoreText },
  { name: `${ALL}/is_truncated`, title: "Cut off by a limit", text: percentText },
  { name: `${ALL}/has_error`, title: "Failed with an error", text: percentText },
  { name: `${ALL}/solved_none`, title: "Groups with every reward 0 or less", text: percentText },
  { name: `${ALL}/solved_all`, title: "Groups with every reward 1 or more", text: percentText },
  { name: `${ALL}/num_output_tokens/mean`, title: "Sampled tokens per rollout", text: numberText },
  { name: `${ALL}/num_turns/mean`, title: "Turns per rollout", text: numberText },
  { name: "off_policy/mean", title: "Lag of the weights, in versions", text: numberText },
  { name: "trainer/kl", title: "KL of sampling and trained weights", text: numberText },
  { name: "trainer/loss", title: "Loss", text: numberText },
  { name: "trainer/grad_norm", title: "Norm of the gradient", text: numberText },
];

/** Failures by class, and the mean reward of each member of a group of environments. */
function moreMeasures(names: readonly string[]): readonly Measure[] {
  return names.flatMap((name): Measure[] => {
    if (name.startsWith(`${ALL}/error/`)) {
      return [{ name, title: `Failed: ${name.slice(`${ALL}/error/`.length)}`, text: percentText }];
    }
    const member = /^train\/(?!agg\/)(.+)\/all\/reward\/mean$/.exec(name)?.[1];
    return member === undefined ? [] : [{ name, title: `Mean reward of ${member}`, text: scoreText }];
  });
}

interface MeasureTableProps {
  readonly series: RunSeries;
  readonly step: number;
  readonly before: number | null;
}

export function MeasureTable({ series, step, before }: MeasureTableProps) {
  const at = (name: string, of: number | null) => {
    return of === null ? null : (series.of(name)[series.steps.indexOf(of)] ?? null);
  };
  const rows = [...MEASURES, ...moreMeasures(series.names)].flatMap(({ name, title, text }) => {
    const [then, now] = [at(name, before), at(name, step)];
    // A measure that is 0 in both steps says nothing about a change.
    return (then ?? 0) === 0 && (now ?? 0) === 0 ? [] : [{ name, title, text, then, now }];
  });
  return (
    <Scroll label="Measures of the two steps">
      <table>
        <caption>Rollouts that arrived</caption>
        <thead>
          <tr>
            <th scope="col">Measure</th>
            <StepHeaders before={before} step={step} />
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, title, text, then, now }) => (
            <tr key={name}>
              <th scope="row">
                <Shown text={title} most={200} />
              </th>
              {before !== null && <td className="numeric">{text(then)}</td>}
              <td className="numeric">{text(now)}</td>
              {before !== null && <td className="numeric">{changeText(then, now, text)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function StepHeaders({ before, step }: { readonly before: number | null; readonly step: number }) {
  const names = before === null ? [`Step ${step}`] : [`Step ${before}`, `Step ${step}`, "Change"];
  return names.map((name) => (
    <th key={name} scope="col" className="numeric">
      {name}
    </th>
  ));
}

/** `+0.2`, `−31 %`; `=` if both are shown as the same. */
function changeText(then: number | null, now: number | null, text: (value: number | null) => string): string {
  if (then === null || now === null) return NOTHING;
  if (text(then) === text(now)) return "=";
  return `${now > then ? "+" : "−"}${text(Math.abs(now - then))}`;
}

interface ScoreTableProps {
  readonly now: StepFacts;
  readonly before: StepFacts | null;
  readonly steps: readonly [before: number | null, step: number];
}

export function ScoreTable({ now, before, steps }: ScoreTableProps) {
  const changes = scoreChanges(before ?? { ...now, scores: new Map() }, now);
  return (
    <Scroll label="Scores of the two steps">
      <table>
        <caption>Scores in the batch, on average</caption>
        <thead>
          <tr>
            <th scope="col">Score</th>
            <th scope="col" className="numeric">
              Weight
            </th>
            <StepHeaders before={steps[0]} step={steps[1]} />
          </tr>
        </thead>
        <tbody>
          {changes.map(({ name, weight, before: then, now: value }) => (
            <tr key={name}>
              <th scope="row">
                <Shown text={name} most={200} />
              </th>
              <td className="numeric">{weight === 0 ? "metric" : numberText(weight)}</td>
              {steps[0] !== null && <td className="numeric">{scoreText(then)}</td>}
              <td className="numeric">{scoreText(value)}</td>
              {steps[0] !== null && <td className="numeric">{changeText(then, value, scoreText)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

interface TaskTableProps {
  readonly run: string;
  readonly step: number;
  readonly now: StepFacts;
  readonly before: StepFacts | null;
  readonly stepBefore: number | null;
}

/** The tasks of the step, the lowest reward first. */
export function TaskTable({ run, step, now, before, stepBefore }: TaskTableProps) {
  const [all, setAll] = useState(false);
  const earlier = before === null ? new Map<string, number | null>() : taskMeans(before);
  const shown = all ? now.tasks : now.tasks.slice(0, LISTED);
  const hasShared = now.tasks.some(({ task_key }) => task_key !== null && earlier.has(task_key));
  return (
    <>
      <Scroll label="Tasks of the step">
        <table>
          <caption>Tasks of step {countText(step)}, the lowest reward first</caption>
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col">Task</th>
              <th scope="col" className="numeric">
                Rollouts
              </th>
              <th scope="col" className="numeric">
                Mean reward
              </th>
              {hasShared && (
                <th scope="col" className="numeric">
                  In step {stepBefore}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ group, task_key, task_text, mean, rollouts }) => (
              <tr key={group}>
                <td>
                  <Link to="/runs/$id/groups/$group" params={{ id: run, group: String(group) }} search={{}}>
                    {countText(group)}
                  </Link>
                </td>
                <th scope="row">
                  <TaskName task={{ task_key, task_text }} keyCharacters={8} />
                </th>
                <td className="numeric">{countText(rollouts)}</td>
                <td className="numeric">{scoreText(mean)}</td>
                {hasShared && (
                  <td className="numeric">
                    {task_key !== null && earlier.has(task_key) ? scoreText(earlier.get(task_key)) : "not in it"}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {now.tasks.length > LISTED && (
        <button type="button" className="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? `Show the first ${LISTED}` : `Show all ${countText(now.tasks.length)} tasks`}
        </button>
      )}
    </>
  );
}
