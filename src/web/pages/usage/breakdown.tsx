/** The cost of a period for each project, key, model, environment or kind, the most expensive first. */
import { useState } from "react";
import type { UsageBucket, UsageGroup, UsageResult } from "../../../billing/wire.ts";
import { countText, dollarsText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { costOf, judgesText, modelsText, totalOf, totalText, type UsageCost } from "./cost.ts";

interface BreakdownProps {
  readonly group: UsageGroup;
  readonly buckets: readonly UsageBucket[];
  readonly nameOf: (id: string) => string;
  /** Limits the page to one of them. */
  readonly onPick: (id: string) => void;
}

/** How many rows are shown before the reader asks for all. */
const FIRST = 8;

const NAME_OF = {
  project: ({ project_id }) => project_id,
  key: ({ key_id }) => key_id,
  environment: ({ environment }) => environment,
  model: ({ model }) => model,
  kind: ({ kind }) => kind,
} as const satisfies Record<UsageGroup, (result: UsageResult) => string | null>;

interface CostColumn {
  readonly name: string;
  readonly text: (cost: UsageCost) => string;
  /** A part of the cost. */
  readonly isPart?: boolean;
}

const COLUMNS: readonly CostColumn[] = [
  { name: "Cost", text: totalText },
  { name: "Models, judges", text: modelsText, isPart: true },
  { name: "Platform", text: ({ platform }) => dollarsText(platform), isPart: true },
  { name: "Rollouts", text: ({ rollouts }) => countText(rollouts) },
  { name: "Tokens", text: ({ tokens }) => countText(tokens) },
];

export function Breakdown({ group, buckets, nameOf, onPick }: BreakdownProps) {
  const [all, setAll] = useState(false);
  const rows = rowsOf(buckets, group);
  // Without charges of the platform, calls of models are the whole cost.
  const isCharged = rows.some(({ cost }) => cost.platform !== 0);
  const columns = isCharged ? COLUMNS : COLUMNS.filter(({ isPart }) => !isPart);
  const shown = all ? rows : rows.slice(0, FIRST);
  return (
    <section>
      <h2>By {group}</h2>
      {rows.length === 0 && <p className="soft">No usage in this period.</p>}
      {rows.length > 0 && (
        <Scroll label={`Usage by ${group}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">{group}</th>
                {columns.map(({ name }) => (
                  <th key={name} scope="col" className="numeric">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map(({ id, cost }) => (
                <tr key={id}>
                  <th scope="row">
                    {id === "" ? (
                      nameOf(id)
                    ) : (
                      <button type="button" className="link" title={id} onClick={() => onPick(id)}>
                        <Shown text={nameOf(id)} most={80} />
                      </button>
                    )}
                  </th>
                  {columns.map(({ name, text }) => (
                    <td key={name} className="numeric">
                      {text(cost)}
                      {group === "model" && name === "Cost" && <JudgesOf cost={cost} />}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {shown.length < rows.length && (
        <button type="button" className="link" onClick={() => setAll(true)}>
          Show all {countText(rows.length)}
        </button>
      )}
    </section>
  );
}

/** Usage is not counted by the model of a judge: its cost is in the row of the model that it judged. */
function JudgesOf({ cost }: { readonly cost: UsageCost }) {
  if (cost.judgeCalls === 0) return null;
  return <span className="second soft">of this, judges of its rollouts: {judgesText(cost)}</span>;
}

function rowsOf(buckets: readonly UsageBucket[], group: UsageGroup) {
  const results = buckets.flatMap((bucket) => bucket.results);
  const rows = [...Map.groupBy(results, (result) => NAME_OF[group](result) ?? "")].map(([id, of]) => ({
    id,
    cost: costOf(of),
  }));
  return rows.sort((one, other) => totalOf(other.cost) - totalOf(one.cost) || other.cost.calls - one.cost.calls);
}
