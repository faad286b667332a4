/** Usage and charges: by day, grouped as the reader chooses. Amounts are the ledger's. */
import { useQuery } from "@tanstack/react-query";
import {
  type BucketWidth,
  USAGE_GROUPS,
  type UsageBucket,
  type UsageGroup,
  type UsageResult,
} from "../../../billing/wire.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, dollarsText, NOTHING, sum } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Plot } from "../../components/plot.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { Stat, Stats } from "../../components/stat.tsx";
import { useDocumentTitle } from "../../layout/title.ts";

/** The time spans, by their name in the URL. */
const SPANS = { day: { width: "1h", limit: 24 }, month: { width: "1d", limit: 31 } } as const satisfies Record<
  string,
  { readonly width: BucketWidth; readonly limit: number }
>;

export function Page() {
  useDocumentTitle("Usage");
  const [search, change] = useAddress();
  const span = search["span"] === "day" ? "day" : "month";
  const group = USAGE_GROUPS.find((one) => one === search["group"]) ?? "environment";
  const { width, limit } = SPANS[span];
  const { data, error, refetch } = useQuery({
    queryKey: ["usage", span, group],
    queryFn: ({ signal }) => api.usage.list({ bucket_width: width, limit, group_by: [group] }, { signal }),
  });
  return (
    <main>
      <h1>Usage</h1>
      <p className="row">
        <label className="row">
          Time
          <select value={span} onChange={(event) => change({ span: event.target.value })}>
            <option value="day">the last 24 hours, by hour</option>
            <option value="month">the last 31 days, by day</option>
          </select>
        </label>
        <label className="row">
          By
          <select value={group} onChange={(event) => change({ group: event.target.value })}>
            {USAGE_GROUPS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <a href={`/v1/usage/csv?bucket_width=${width}&group_by=${group}&limit=${limit}`} download="usage.csv">
          CSV
        </a>
      </p>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="usage" />}
      {data !== undefined && <Usage buckets={data.data} group={group} hourly={span === "day"} />}
    </main>
  );
}

interface UsageProps {
  readonly buckets: readonly UsageBucket[];
  readonly group: UsageGroup;
  readonly hourly: boolean;
}

function Usage({ buckets, group, hourly }: UsageProps) {
  const results = buckets.flatMap((bucket) => bucket.results);
  const inOrder = [...buckets].sort((one, other) => one.start_time - other.start_time);
  const total = (count: (result: UsageResult) => number) => results.reduce((all, result) => all + count(result), 0);
  return (
    <>
      <Stats>
        <Stat name="Charged by the platform" value={dollarsText(total(({ cost_micros }) => cost_micros))} />
        <Stat
          name="Ended rollouts"
          value={countText(total(({ rollouts }) => rollouts))}
          behind={`${countText(total(({ scored }) => scored))} with a score`}
        />
        <Stat
          name="Policy tokens"
          value={countText(total(({ input_tokens, output_tokens }) => input_tokens + output_tokens))}
          behind={`${countText(total(({ output_tokens }) => output_tokens))} sampled`}
        />
        <Stat name="Judge calls" value={countText(total(({ judge_calls }) => judge_calls))} />
      </Stats>
      <Plot
        title={`Charged, in dollars, by ${hourly ? "hour" : "day"}`}
        x={hourly ? "hour; 0 is this one" : "day; 0 is today"}
        at={inOrder.map((_, index) => index - inOrder.length + 1)}
        series={[{ name: "charged", values: inOrder.map(charged) }]}
      />
      <GroupTable results={results} group={group} />
    </>
  );
}

function charged({ results }: UsageBucket): number {
  return results.reduce((all, { cost_micros }) => all + cost_micros, 0) / 1_000_000;
}

/** The name of the group of a result. */
function nameOf(result: UsageResult, group: UsageGroup): string {
  const names = {
    project: result.project_id,
    key: result.key_id,
    environment: result.environment,
    model: result.model,
    kind: result.kind,
  };
  return names[group] ?? "none";
}

function GroupTable({ results, group }: { readonly results: readonly UsageResult[]; readonly group: UsageGroup }) {
  const byName = Map.groupBy(results, (result) => nameOf(result, group));
  if (byName.size === 0) return <p>No usage in this period.</p>;
  const rows = [...byName].map(([name, of]) => ({
    name,
    micros: of.reduce((all, { cost_micros }) => all + cost_micros, 0),
    rollouts: of.reduce((all, { rollouts }) => all + rollouts, 0),
    turns: of.reduce((all, { turns }) => all + turns, 0),
    tokens: of.reduce((all, { input_tokens, output_tokens }) => all + input_tokens + output_tokens, 0),
    lines: of.map(({ lines }) => lines),
  }));
  rows.sort((one, other) => other.micros - one.micros);
  return (
    <Scroll label="Usage">
      <table>
        <thead>
          <tr>
            <th scope="col">{group}</th>
            <th scope="col" className="numeric">
              Charged
            </th>
            <th scope="col" className="numeric">
              Rollouts
            </th>
            <th scope="col" className="numeric">
              Turns
            </th>
            <th scope="col" className="numeric">
              Tokens
            </th>
            <th scope="col">Charged by line</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">
                <Shown text={row.name} />
              </th>
              <td className="numeric">{dollarsText(row.micros)}</td>
              <td className="numeric">{countText(row.rollouts)}</td>
              <td className="numeric">{countText(row.turns)}</td>
              <td className="numeric">{countText(row.tokens)}</td>
              <td>{linesText(row.lines) || NOTHING}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function linesText(lines: readonly UsageResult["lines"][]): string {
  const names = [...new Set(lines.flatMap((one) => Object.keys(one)))];
  return names
    .map((name) => {
      const micros = sum(Object.fromEntries(lines.map((one, index) => [index, Reflect.get(one, name) ?? 0])));
      return `${name} ${dollarsText(micros)}`;
    })
    .join(", ");
}
