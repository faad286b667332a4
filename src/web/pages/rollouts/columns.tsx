/** The columns of a list of rollouts, and which of them are shown. */

import { Link } from "@tanstack/react-router";
import { printName } from "../../../contract/filter.ts";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import type { RunView } from "../../../contract/run.ts";
import { stopText } from "../../../contract/stop-text.ts";
import { Badge } from "../../components/badge.tsx";
import { rolloutCutText } from "../../components/cut-off.ts";
import type { Column } from "../../components/data-table.tsx";
import {
  countText,
  dollarsText,
  durationText,
  NOTHING,
  numberText,
  scoreText,
  sum,
  timeText,
  words,
} from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { TaskName } from "../../components/task-name.tsx";
import { ExpectedAnswer, JudgesWord, LastAnswer } from "./row-texts.tsx";

/** Parameters in the URL of a rollout that name the list it was opened from, for the links to its neighbours. */
export interface From {
  readonly list: string;
  readonly filter: string | undefined;
  readonly sort: string | undefined;
}

/** They fit side by side on a screen of 1,280 pixels. */
const SHOWN_FIRST = ["rollout", "task", "answer", "expected", "outcome", "reward", "stop"] as const;

/** The default columns: with the judges' words if the run has judges, and with errors if it has failed rollouts. */
export function firstColumns({ counts, judges }: Pick<RunView, "counts" | "judges">): readonly string[] {
  const hasJudges = Object.keys(judges).length > 0;
  return [...SHOWN_FIRST, hasJudges ? "judge" : "turns", ...(sum(counts.failed) === 0 ? [] : ["error"])];
}

const SCORE = "score:";

export interface Choosable {
  readonly id: string;
  readonly name: string;
}

export function choosable(metrics: readonly string[]): readonly Choosable[] {
  return [
    ...columnsOf(NOWHERE, []).map(({ id, header }) => ({ id, name: header })),
    ...metrics.map((name) => ({ id: SCORE + name, name })),
  ];
}

const NOWHERE: From = { list: "", filter: undefined, sort: undefined };

/** `chosen`: from the URL, ids joined by commas; each is encoded because names of scores may contain any character. */
export function chosenColumns(
  chosen: string | undefined,
  metrics: readonly string[],
  first: readonly string[],
): readonly string[] {
  if (chosen === undefined || chosen === "") return first;
  const known = new Set(choosable(metrics).map(({ id }) => id));
  const ids = chosen.split(",").map(decoded);
  const there = ids.filter((id) => known.has(id));
  return there.length === 0 ? first : there;
}

export function printColumns(ids: readonly string[], first: readonly string[]): string | undefined {
  const isFirst = ids.length === first.length && first.every((id) => ids.includes(id));
  return isFirst ? undefined : ids.map(encodeURIComponent).join(",");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function rolloutColumns(ids: readonly string[], from: From): readonly Column<RolloutSummary>[] {
  const scores = ids.filter((id) => id.startsWith(SCORE)).map((id) => id.slice(SCORE.length));
  return columnsOf(from, scores).filter(({ id }) => ids.includes(id));
}

function columnsOf(from: From, scores: readonly string[]): readonly Column<RolloutSummary>[] {
  return [
    ...IDENTITY(from),
    ...RESULT,
    ...scores.map(scoreColumn),
    ...WORK,
    ...COSTS,
    ...TIMES,
    { id: "error", header: "Error", cell: ({ error }) => <ErrorText error={error} /> },
  ];
}

function IDENTITY({ list, filter, sort }: From): readonly Column<RolloutSummary>[] {
  return [
    {
      id: "rollout",
      header: "Rollout",
      width: 12,
      sort: "dispatched",
      cell: ({ id, group, slot, attempt }) => (
        <Link to="/rollouts/$id" params={{ id }} search={{ list, filter, sort } as never}>
          {group}/{slot}
          {attempt > 0 && ` attempt ${attempt + 1}`}
        </Link>
      ),
    },
    {
      id: "group",
      header: "Group",
      width: 9,
      sort: "group",
      numeric: true,
      cell: ({ run_id, group }) => (
        <Link to="/runs/$id/groups/$group" params={{ id: run_id, group: String(group) }} search={{}}>
          {countText(group)}
        </Link>
      ),
    },
    {
      id: "task",
      header: "Task",
      least: 14,
      cell: (row) => <TaskName task={row} />,
    },
    { id: "answer", header: "Last answer", least: 13, cell: (row) => <LastAnswer row={row} /> },
    { id: "expected", header: "Expected", least: 10, cell: (row) => <ExpectedAnswer row={row} /> },
    {
      id: "member",
      header: "Member",
      width: 16,
      cell: ({ member }) => (member === null ? NOTHING : <Shown text={member} />),
    },
    { id: "outcome", header: "Outcome", width: 19, cell: (row) => <Outcome {...row} /> },
  ];
}

const RESULT: readonly Column<RolloutSummary>[] = [
  { id: "judge", header: "Judges", least: 13, cell: (row) => <JudgesWord row={row} /> },
  {
    id: "reward",
    header: "Reward",
    width: 10,
    sort: "reward",
    numeric: true,
    cell: ({ reward }) => scoreText(reward),
  },
  {
    id: "advantage",
    header: "Advantage",
    width: 12,
    numeric: true,
    cell: ({ advantage }) => scoreText(advantage),
  },
];

function scoreColumn(name: string): Column<RolloutSummary> {
  return {
    id: SCORE + name,
    header: name,
    width: Math.min(24, Math.max(11, name.length + 3)),
    sort: printName(name),
    numeric: true,
    cell: ({ scores }) => scoreText(scores.find((score) => score.name === name)?.score),
  };
}

const WORK: readonly Column<RolloutSummary>[] = [
  { id: "turns", header: "Turns", width: 9, sort: "turns", numeric: true, cell: ({ turns }) => numberText(turns) },
  { id: "calls", header: "Calls", width: 10, sort: "calls", numeric: true, cell: ({ calls }) => numberText(calls) },
  {
    id: "tokens",
    header: "Tokens in, out",
    width: 16,
    sort: "tokens",
    numeric: true,
    cell: ({ prompt_tokens, completion_tokens }) =>
      prompt_tokens === null ? NOTHING : `${numberText(prompt_tokens)}, ${numberText(completion_tokens)}`,
  },
  {
    id: "duration",
    header: "Duration",
    width: 11,
    sort: "duration",
    numeric: true,
    cell: ({ duration }) => durationText(duration),
  },
  {
    id: "stop",
    header: "Stopped by",
    width: 17,
    cell: ({ stop_condition }) =>
      stop_condition === null ? NOTHING : <Shown text={words(stopText(stop_condition))} />,
  },
  { id: "judged", header: "Judged", width: 9, cell: ({ has_judgements }) => (has_judgements ? "yes" : "no") },
  { id: "step", header: "Step", width: 8, numeric: true, cell: ({ step }) => numberText(step) },
];

const COSTS: readonly Column<RolloutSummary>[] = [
  {
    id: "policy-cost",
    header: "Policy cost",
    width: 13,
    numeric: true,
    cell: ({ cost }) => dollarsText(cost.policy_micros),
  },
  {
    id: "judge-cost",
    header: "Judge cost",
    width: 12,
    numeric: true,
    cell: ({ cost }) => dollarsText(cost.judge_micros),
  },
  {
    id: "charged",
    header: "Charged",
    width: 11,
    numeric: true,
    cell: ({ cost }) => dollarsText(cost.charged_micros),
  },
];

const TIMES: readonly Column<RolloutSummary>[] = [
  { id: "started", header: "Started", width: 22, sort: "started", cell: ({ started_at }) => timeText(started_at) },
  { id: "ended", header: "Ended", width: 22, sort: "ended", cell: ({ ended_at }) => timeText(ended_at) },
];

function Outcome(row: RolloutSummary) {
  const { status, outcome, reason, cancelling, superseded_by, is_truncated, stop_condition } = row;
  return (
    <>
      <Badge state={outcome ?? status} /> {reason !== null && <Shown text={words(reason)} />}
      {is_truncated && <Badge state="cut off" tone="warn" title={rolloutCutText(stop_condition)} />}
      {cancelling && <span className="soft"> cancelling</span>}
      {superseded_by !== null && <span className="soft"> superseded</span>}
    </>
  );
}

function ErrorText({ error }: Pick<RolloutSummary, "error">) {
  if (error === null) return NOTHING;
  return (
    <>
      <code>
        <Shown text={error.error} />
      </code>{" "}
      <Shown text={error.message} />
    </>
  );
}
