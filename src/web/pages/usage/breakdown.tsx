/** The cost of a period for each project, key, model, environment or kind, the most expensive first. */
import { useState } from "react";
import type { UsageBucket, UsageGroup, UsageResult } from "../../../billing/wire.ts";
import { countText, dollarsText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { costOf, judgesText, policyText, totalOf, totalText, type UsageCost } from "./cost.ts";

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
}

/**
 * The parts of the cost only if there are several. Judges are counted for the rollouts that they judged: usage does not
 * have the model of a judge.
 */
function columnsOf(group: UsageGroup, costs: readonly UsageCost[]): readonly CostColumn[] {
  const isOfModel = group === "model";
  const judges = { name: isOfModel ? "Judges of its rollouts" : "Judges", text: judgesText };
  const platform = { name: "Platform", text: ({ platform: micros }: UsageCost) => dollarsText(micros) };
  const parts = [
    ...(costs.some(({ judgeCalls }) => judgeCalls > 0) ? [judges] : []),
    ...(costs.some((cost) => cost.platform !== 0) ? [platform] : []),
  ];
  return [
    { name: "Cost", text: totalText },
    ...(parts.length > 0 ? [{ name: isOfModel ? "The model" : "Models", text: policyText }, ...parts] : []),
    { name: "Rollouts", text: ({ rollouts }) => countText(rollouts) },
    { name: "Tokens", text: ({ tokens }) => countText(tokens) },
  ];
}

export function Breakdown({ group, buckets, nameOf, onPick }: BreakdownProps) {
  const [all, setAll] = useState(false);
  const rows = rowsOf(buckets, group);
  const columns = columnsOf(
    group,
    rows.map(({ cost }) => cost),
  );
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

function rowsOf(buckets: readonly UsageBucket[], group: UsageGroup) {
  const results = buckets.flatMap((bucket) => bucket.results);
  const rows = [...Map.groupBy(results, (result) => NAME_OF[group](result) ?? "")].map(([id, of]) => ({
    id,
    cost: costOf(of),
  }));
  return rows.sort((one, other) => totalOf(other.cost) - totalOf(one.cost) || other.cost.calls - one.cost.calls);
}
