/** What changed between two steps, one sentence for each change that is large enough to matter. */

import type { ReactNode } from "react";
import { stopText } from "../../../contract/stop-text.ts";
import { countText, differenceText, numberText, percentText, scoreText, words } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { type Cause, causesOf, type StepFacts, sharedTasks, type ToolCalls, toolCauses } from "./step-facts.ts";
import { ROLLOUTS_READ } from "./step-tools.ts";
import { ToolErrors } from "./tool-errors.tsx";

interface CausesProps {
  /** The id of the run. */
  readonly run: string;
  readonly before: StepFacts;
  readonly now: StepFacts;
  readonly hasTools: boolean;
  /** Undefined while they are counted. */
  readonly tools: ReadonlyMap<string, ToolCalls> | undefined;
  readonly toolsThen: ReadonlyMap<string, ToolCalls> | undefined;
}

export function Causes({ run, before, now, hasTools, tools, toolsThen }: CausesProps) {
  if (before.rollouts === 0 || now.rollouts === 0) return null;
  const causes = causesOf(before, now);
  const ofTools = tools === undefined || toolsThen === undefined ? null : toolCauses(toolsThen, tools);
  return (
    <section aria-label="What changed">
      <h3>What changed in the batches</h3>
      <ul>
        {[...causes, ...(ofTools ?? [])].map((cause) => (
          <li key={`${cause.kind} ${cause.name}`}>
            <CauseText cause={cause} />
            {cause.kind === "tools" && !toolsThen?.has(cause.name) && " It was not called in the step before."}
            {cause.kind === "tools" && <ToolErrors run={run} tools={cause.name} calls={tools?.get(cause.name)} />}
          </li>
        ))}
        {causes.length === 0 && <li>No score, share or length changed much.</li>}
        {hasTools && ofTools?.length === 0 && <li>No tool failed much more or less often.</li>}
        <li>
          <TasksText before={before} now={now} />
        </li>
      </ul>
      {hasTools && ofTools === null && <Loading what="the tool calls" />}
      {hasTools && Math.max(before.rollouts, now.rollouts) > ROLLOUTS_READ && (
        <p className="soft">Tool calls are counted in the first {ROLLOUTS_READ} rollouts of each step.</p>
      )}
    </section>
  );
}

function CauseText({ cause }: { readonly cause: Cause }): ReactNode {
  const { kind, name, before, now, part } = cause;
  const went = now < before ? "fell" : "rose";
  const fromTo = (text: (value: number) => string) => `${went} from ${text(before)} to ${text(now)}`;
  switch (kind) {
    case "score":
      return (
        <>
          The score <b>{<Shown text={name} most={200} />}</b> {fromTo(scoreText)}: <b>{differenceText(part)}</b> of the
          reward.
        </>
      );
    case "cut off":
      return <>The share of rollouts that a limit cut off {fromTo(percentText)}.</>;
    case "failed":
      return <>The share of rollouts that failed with an error {fromTo(percentText)}.</>;
    case "stop":
      return (
        <>
          The share of rollouts that stopped by <b>{<Shown text={words(stopText(name))} most={200} />}</b>{" "}
          {fromTo(percentText)}.
        </>
      );
    case "tokens":
      return <>Sampled tokens per rollout {fromTo(numberText)} on average.</>;
    case "turns":
      return <>Turns per rollout {fromTo(numberText)} on average.</>;
    case "tools":
      return (
        <>
          Failed calls of the tool <b>{<Shown text={name} most={200} />}</b> {fromTo(percentText)} of its calls.
        </>
      );
  }
}

function TasksText({ before, now }: Pick<CausesProps, "before" | "now">) {
  const shared = sharedTasks(before, now);
  const all = now.tasks.length;
  if (shared.n === 0) {
    return <>No task is in both steps: part of the change may be that the tasks are harder or easier.</>;
  }
  return (
    <>
      {countText(shared.n)} of the {countText(all)} tasks {shared.n === 1 ? "was" : "were"} in the step before too:
      their mean reward was {scoreText(shared.before)} and is {scoreText(shared.now)}.
    </>
  );
}
