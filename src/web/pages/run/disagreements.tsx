/** The rollouts on which a score or a judge and people differ, each by its task. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { AgreementItem } from "../../../contract/agreement.ts";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import { api } from "../../client.ts";
import { messageOf } from "../../components/error-note.tsx";
import { countText, NOTHING } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";
import { useFrozen } from "../../frozen.ts";
import { idFilter } from "./rollout-links.tsx";

/** Rollouts that are shown before the reader asks for all. */
const FIRST = 5;
/** Characters of a task, and of a value. */
const TASK = 70;
const VALUE = 40;

interface DisagreementsProps {
  /** The id of the run. */
  readonly run: string;
  readonly item: AgreementItem;
}

export function Disagreements({ run, item: { disagreements, n, agreement } }: DisagreementsProps) {
  const frozen = useFrozen();
  const [all, setAll] = useState(false);
  const shown = all ? disagreements : disagreements.slice(0, FIRST);
  const { data: tasks, error } = useQuery({
    queryKey: ["rollouts", run, "tasks", ...disagreements.map(({ rollout_id }) => rollout_id)],
    queryFn: ({ signal }) => readTasks(run, disagreements, signal),
    enabled: !frozen && disagreements.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (disagreements.length === 0) return NOTHING;
  const left = disagreements.length - shown.length;
  const unlisted = agreement === null ? 0 : Math.round(n * (1 - agreement)) - disagreements.length;
  return (
    <>
      <ul className="plain disagreements">
        {shown.map(({ rollout_id: id, given, people }) => (
          <li key={id}>
            {!frozen && (
              <>
                <Link to="/rollouts/$id" params={{ id } as never} search={{} as never} title={id}>
                  <Shown text={taskText(tasks?.get(id)) ?? `rollout …${id.slice(-8)}`} most={TASK} />
                </Link>{" "}
              </>
            )}
            <span className="soft">
              <Shown text={String(given)} most={VALUE} />, people <Shown text={String(people)} most={VALUE} />
            </span>
          </li>
        ))}
      </ul>
      {left > 0 && (
        <button type="button" className="link" onClick={() => setAll(true)}>
          Show {countText(left)} more
        </button>
      )}
      {left === 0 && unlisted > 0 && (
        <span className="soft">{countText(unlisted)} more rollouts differ less, or as much, and are not listed.</span>
      )}
      {error !== null && (
        <span className="soft">
          Their tasks could not be read: <Shown text={messageOf(error)} most={200} />
        </span>
      )}
    </>
  );
}

function taskText(task: RolloutSummary | undefined): string | null {
  if (task === undefined) return null;
  return task.task_text ?? (task.task_key === null ? null : `task ${task.task_key.slice(0, 8)}`);
}

/** By the id of the rollout. A filter has space for about ten ids. */
async function readTasks(
  run: string,
  disagreements: AgreementItem["disagreements"],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, RolloutSummary>> {
  const tasks = new Map<string, RolloutSummary>();
  for (let ids = disagreements.map(({ rollout_id }) => rollout_id); ids.length > 0; ) {
    const { filter, n } = idFilter(ids);
    const { data } = await api.rollouts.list(run, { filter, limit: n }, { signal });
    for (const row of data) tasks.set(row.id, row);
    ids = ids.slice(n);
  }
  return tasks;
}
