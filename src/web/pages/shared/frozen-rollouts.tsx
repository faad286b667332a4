/** The rollouts of a report file, as a table that sorts in the browser. */

import { useMemo, useState } from "react";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import { stopText } from "../../../contract/stop-text.ts";
import { Badge } from "../../components/badge.tsx";
import { type Column, DataTable, type Sort } from "../../components/data-table.tsx";
import { durationText, NOTHING, numberText, scoreText, words } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";

type Measured = (rollout: RolloutSummary) => number | null;

const SORTS: Readonly<Record<string, Measured>> = {
  group: ({ group, slot, attempt }) => group * 1e6 + slot * 1e3 + attempt,
  reward: ({ reward }) => reward,
  turns: ({ turns }) => turns,
  duration: ({ duration }) => duration,
};

const COLUMNS: readonly Column<RolloutSummary>[] = [
  {
    id: "place",
    header: "Group, slot",
    width: 16,
    sort: "group",
    cell: ({ group, slot, attempt }) => `${group}, ${slot}${attempt > 0 ? `, attempt ${attempt}` : ""}`,
  },
  { id: "outcome", header: "Outcome", width: 16, cell: ({ outcome, status }) => <Badge state={outcome ?? status} /> },
  { id: "reward", header: "Reward", width: 12, numeric: true, sort: "reward", cell: ({ reward }) => scoreText(reward) },
  { id: "turns", header: "Turns", width: 9, numeric: true, sort: "turns", cell: ({ turns }) => numberText(turns) },
  {
    id: "duration",
    header: "Took",
    width: 14,
    numeric: true,
    sort: "duration",
    cell: ({ duration }) => durationText(duration),
  },
  { id: "stop", header: "Stopped by", cell: ({ stop_condition }) => words(stopText(stop_condition ?? NOTHING)) },
  {
    id: "error",
    header: "Error",
    cell: ({ error }) => (error === null ? NOTHING : <Shown text={`${error.error}: ${error.message}`} />),
  },
];

export function FrozenRollouts({ rollouts }: { readonly rollouts: readonly RolloutSummary[] }) {
  const [sort, setSort] = useState<Sort>();
  const rows = useMemo(() => sorted(rollouts, sort), [rollouts, sort]);
  return (
    <DataTable
      label="Rollouts"
      columns={COLUMNS}
      rows={rows}
      rowId={({ id }) => id}
      sort={sort}
      onSort={setSort}
      empty={<p>No rollouts.</p>}
    />
  );
}

/** Null values come last in both directions. */
function sorted(rollouts: readonly RolloutSummary[], sort: Sort): readonly RolloutSummary[] {
  const by = sort === undefined ? undefined : SORTS[sort.replace("-", "")];
  if (by === undefined) return rollouts;
  const sign = sort?.startsWith("-") ? -1 : 1;
  return rollouts.toSorted((one, other) => {
    const [a, b] = [by(one), by(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b);
  });
}
