/** `rollcall env results`: for each model, the mean reward of its evals of an environment, and what was not scored. */
import semver from "semver";
import {
  type Comparable,
  comparableResults,
  countOpen,
  placeText,
  type Ranked,
  settingsOf,
} from "../../contract/comparable-results.ts";
import type { EnvironmentResults } from "../../contract/environment-results.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, namedCounts, rangeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";
import { publishedName } from "./env-hub.ts";

const HEADER = [
  "place",
  "model",
  "reward",
  "95 %",
  "tasks",
  "scored",
  "failed",
  "unscored",
  "cancelled",
  "not ended",
  "evals",
];

export const ENV_RESULTS = command({
  name: "env results",
  takes: "<environment>",
  argument: "environment",
  reads: true,
  help: "show the results of the project's evals of an environment, for each model",
  more: "The newest 200 runs of the project count. A table has one version, one set of arguments and judges, and one dataset: only rewards in one table can be compared.",
  flags: { version: { value: "VERSION", help: "only results of this version; default all" }, ...PLATFORM_FLAGS },
  run(line) {
    const name = withoutVersion(line.one("an environment"));
    const version = line.text("version");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const found = await client.environments.results(name, { signal });
      if (version === undefined) return { json: found, text: () => resultsText(found, room) };
      const versions = [...new Set(found.rows.map((row) => row.version))];
      if (!versions.includes(version)) {
        const known = versions.length === 0 ? "no version" : versions.join(", ");
        throw usageError(`no evals of version ${version}: there are evals of ${known}`, "version");
      }
      const results = { ...found, rows: found.rows.filter((row) => row.version === version) };
      const id = `${found.id} (only version ${version})`;
      return { json: results, text: () => resultsText({ ...results, id }, room) };
    });
  },
});

function withoutVersion(given: string): string {
  if (given === "") throw usageError("name an environment, such as alice/guess-word", "environment");
  if (!given.includes("/")) return given;
  const { name, version } = publishedName(given);
  if (version === null) return name;
  const flag = semver.valid(version) === null ? "" : ` --version ${version}`;
  throw usageError(`name the environment without a version: ${name}${flag}`, "environment");
}

export function resultsText({ id, runs, has_more, left_out, rows }: EnvironmentResults, room: number): string {
  const counted = runs === 1 ? "1 run" : `${has_more ? "the newest" : "all"} ${countText(runs)} runs`;
  const others = namedCounts(left_out);
  const head = `Results of this project on ${id}, from ${counted}${others === "–" ? "" : `; in no table: ${others}`}`;
  const tables = comparableResults(rows, "").map((table) => tableText(table, room));
  return [safeLine(head), ...(tables.length === 0 ? ["No evals."] : [...tables, EXPLAINED])].join("\n\n");
}

function tableText(table: Comparable, room: number): string {
  const [first] = table.rows;
  const { version = "", dataset = null, inline = false } = first?.row ?? {};
  const named = [`version ${version}`, ...settingsOf(table), ...(dataset === null ? [] : [`dataset ${dataset}`])];
  return [
    safeLine(named.join(", ")),
    ...(inline ? ["The rows came with each run, so these evals may have different tasks."] : []),
    listText(table.rows, { header: HEADER, rowOf, none: "", room }),
  ].join("\n");
}

const EXPLAINED = `reward: the mean of the ended eval with the most scored tasks; the counts are those of all evals
place: if intervals overlap, or one is unknown, models share places, because chance may have made their order`;

function rowOf({ row, places }: Ranked): string[] {
  const { model, weights_of, measured, rollouts, evals } = row;
  const { scored, failed, unscored, cancelled } = rollouts;
  const { mean, wilson95, ci95, n_tasks } = measured?.reward ?? { mean: null, ci95: null, n_tasks: null };
  const interval = wilson95 ?? ci95;
  return [
    placeText(places) ?? "–",
    weights_of === null ? model : `${model}, trained by ${weights_of}`,
    mean === null ? "no score" : mean.toFixed(3),
    interval === null ? "–" : rangeText(interval),
    n_tasks === null ? "–" : countText(n_tasks),
    ...[scored, failed, unscored, cancelled, countOpen(rollouts), evals].map(countText),
  ];
}
