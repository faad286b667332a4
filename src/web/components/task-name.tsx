/** Shows a task by the text of its question, with its key as the tooltip; by the key alone if there is no text. */
import type { RolloutSummary } from "../../contract/rollout-list.ts";
import { allSeen } from "../../contract/shown-text.ts";
import { NOTHING } from "./format.ts";
import { Shown } from "./shown.tsx";

type Task = Pick<RolloutSummary, "task_key" | "task_text">;

interface TaskNameProps {
  readonly task: Task;
  /** How many characters of a key are shown; default: all. */
  readonly keyCharacters?: number;
}

export function TaskName({ task: { task_key: key, task_text: text }, keyCharacters }: TaskNameProps) {
  if (text !== null) {
    return (
      <span className="task-text" title={`${allSeen(text)}\ntask ${key ?? "without a key"}`}>
        <Shown text={text} />
      </span>
    );
  }
  if (key === null) return NOTHING;
  return (
    <code title={`task ${key}`}>
      <Shown text={key.slice(0, keyCharacters)} />
    </code>
  );
}

/** The text of the task, below the head of a page. */
export function TaskLine({ task: { task_text: text } }: Pick<TaskNameProps, "task">) {
  if (text === null) return null;
  return (
    <p>
      <Shown text={text} />
    </p>
  );
}
