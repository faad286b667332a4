/** Usage: what a period cost, at models and at the platform, and which project, key, model and environment spent it. */
import { useQuery } from "@tanstack/react-query";
import { USAGE_GROUPS, type UsageBucket, type UsageGroup } from "../../../billing/wire.ts";
import { type Search, useAddress } from "../../address.ts";
import { Bars } from "../../components/bars.tsx";
import { Chip } from "../../components/chip.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, dollarsText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Stat, Stats } from "../../components/stat.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { Breakdown } from "./breakdown.tsx";
import { costOf, costOfBuckets, modelsText, totalOf, totalText } from "./cost.ts";
import { DIVIDED_BY, namesIn, useNames } from "./names.ts";
import { DAYS, dayId, dayText, hourText, type Period, periodOf, periodsAt } from "./period.ts";
import { daysAsk, divisionsAsk, hoursAsk, usageQuery } from "./use-usage.ts";
import "./usage.css";

export function Page() {
  useDocumentTitle("Usage");
  const [search] = useAddress();
  const now = Math.floor(Date.now() / 1000);
  const period = periodOf(search, now);
  const { data, error, refetch } = useQuery(usageQuery(daysAsk(now, namesIn(search))));
  return (
    <main className="usage">
      <h1>Usage</h1>
      <Choices period={period} now={now} />
      <Only />
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="usage" />}
      {data !== undefined && (
        <>
          <Totals
            buckets={data.data.filter(({ start_time }) => start_time >= period.start && start_time < period.end)}
            period={period}
          />
          <div className="columns">
            <Days buckets={data.data} period={period} />
            <Hours period={period} />
          </div>
          <div className="divisions">
            {DIVIDED_BY.filter((group) => search[group] === undefined).map((group) => (
              <Division key={group} group={group} period={period} />
            ))}
          </div>
        </>
      )}
    </main>
  );
}

function Choices({ period, now }: { readonly period: Period; readonly now: number }) {
  const [search, change] = useAddress();
  const known = periodsAt(now);
  const periods = known.some(({ id }) => id === period.id) ? known : [...known, period];
  return (
    <p className="row">
      <label className="row">
        Period
        <select value={period.id} onChange={({ target }) => change({ period: target.value }, { replace: false })}>
          {periods.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <a href={csvPath(period, search)} download="usage.csv">
        CSV
      </a>
      <span className="soft">Days are of UTC. An ended rollout is counted after a minute.</span>
    </p>
  );
}

/** The period by day and by everything that usage is divided by. */
function csvPath({ start, end }: Period, search: Search): string {
  const query = new URLSearchParams({ start_time: String(start), end_time: String(end), bucket_width: "1d" });
  query.set("limit", String(DAYS));
  query.set("group_by", USAGE_GROUPS.join(","));
  for (const [name, value] of Object.entries(namesIn(search))) if (value !== undefined) query.set(name, value);
  return `/v1/usage/csv?${query}`;
}

/** The names that the usage is limited to; each can be taken away. */
function Only() {
  const [search, change] = useAddress();
  const nameOf = useNames();
  const limits = DIVIDED_BY.flatMap((group) => {
    const name = search[group];
    return name === undefined ? [] : [{ group, name }];
  });
  if (limits.length === 0) return null;
  return (
    <p className="row">
      Only
      {limits.map(({ group, name }) => (
        <Chip
          key={group}
          name={group}
          value={nameOf(group, name)}
          onRemove={() => change({ [group]: undefined }, { replace: false })}
        />
      ))}
    </p>
  );
}

function Totals({ buckets, period }: { readonly buckets: readonly UsageBucket[]; readonly period: Period }) {
  const cost = costOfBuckets(buckets);
  return (
    <>
      <Stats>
        <Stat name={`Cost of ${period.name}`} value={totalText(cost)} behind="models, judges and the platform" />
        <Stat
          name="Models and judges"
          value={modelsText(cost)}
          behind={`by the prices of their endpoints; judges ${dollarsText(cost.judges)}`}
        />
        <Stat name="Charged by the platform" value={dollarsText(cost.platform)} />
        <Stat
          name="Ended rollouts"
          value={countText(cost.rollouts)}
          behind={`${countText(cost.scored)} with a score`}
        />
        <Stat name="Tokens" value={countText(cost.tokens)} behind={`in ${countText(cost.calls)} calls`} />
      </Stats>
      {cost.unpriced > 0 && (
        <p className="note">
          The cost of {countText(cost.unpriced)} of {countText(cost.calls)} calls is unknown and in no sum: their
          endpoint has no prices (set them with{" "}
          <code>rollcall endpoint update NAME --input-price D --output-price D</code>
          ), or the reply had no usage.
        </p>
      )}
    </>
  );
}

function Days({ buckets, period }: { readonly buckets: readonly UsageBucket[]; readonly period: Period }) {
  const [, change] = useAddress();
  const points = buckets.map(({ start_time, results }) => {
    const cost = costOf(results);
    return {
      key: dayId(start_time),
      label: dayText(start_time),
      text: `${dayText(start_time)}: ${totalText(cost)}`,
      value: totalOf(cost),
      isChosen: start_time >= period.start && start_time < period.end,
    };
  });
  return (
    <Bars
      title="Cost by day"
      points={points}
      valueText={dollarsText}
      onPick={({ key }) => change({ period: key }, { replace: false })}
    />
  );
}

/** The hours of a single day. */
function Hours({ period }: { readonly period: Period }) {
  const [search] = useAddress();
  const isDay = period.end - period.start === 86_400;
  const { data } = useQuery({ ...usageQuery(hoursAsk(period, namesIn(search))), enabled: isDay });
  if (!isDay || data === undefined) return null;
  const points = data.data.map(({ start_time, results }) => {
    const cost = costOf(results);
    const label = hourText(start_time);
    return { key: label, label, text: `${label}: ${totalText(cost)}`, value: totalOf(cost), isChosen: true };
  });
  return <Bars title={`Cost of ${period.name} by hour (UTC)`} points={points} valueText={dollarsText} />;
}

function Division({ group, period }: { readonly group: UsageGroup; readonly period: Period }) {
  const [search, change] = useAddress();
  const nameOf = useNames();
  const { data, error, refetch } = useQuery(usageQuery(divisionsAsk(period, group, namesIn(search))));
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what={`usage by ${group}`} />;
  return (
    <Breakdown
      group={group}
      buckets={data.data}
      nameOf={(id) => nameOf(group, id)}
      onPick={(id) => change({ [group]: id }, { replace: false })}
    />
  );
}
