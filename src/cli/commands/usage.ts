/** `rollcall usage` and `rollcall statement`: usage, and the charges for it. */

import {
  type StatementView,
  statementCsv,
  USAGE_GROUPS,
  type UsageBucket,
  type UsageGroup,
  type UsageResult,
  usageCsv,
} from "../../billing/wire.ts";
import { COMMAND } from "../../local/package-root.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, dollarsText, timeText } from "../terminal/format.ts";
import { columns, details, listText } from "../terminal/table.ts";

const DAY_S = 86_400;
const USUAL_DAYS = 7;
const MOST_DAYS = 366;
/** The most buckets that a page of the API has. */
const PAGE = 62;
const COUNTED = ["rollouts", "turns", "tokens in", "out", "judge calls", "models", "charged"] as const;

const USAGE = command({
  name: "usage",
  reads: true,
  help: "show usage and charges",
  more: `One line per day with any usage (per hour with --hours) and group. Amounts are in dollars: models is what
calls of models and judges cost by the prices of their endpoints, charged is what the platform charges. --csv and --json
have micro-dollars and all counts.`,
  flags: {
    days: { value: "N", help: `number of days, including today; default ${USUAL_DAYS}` },
    hours: { help: "per hour" },
    by: { value: "NAMES", help: `group by any of ${USAGE_GROUPS.join(", ")}, separated by commas` },
    csv: { help: "print CSV for a spreadsheet" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    line.none();
    const days = line.count("days", 1) ?? USUAL_DAYS;
    if (days > MOST_DAYS) throw usageError(`--days: at most ${MOST_DAYS}`, "days");
    const group_by = groupsOf(line.text("by"));
    const [hours, csv] = [line.on("hours"), line.on("csv")];
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const today = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;
      const bucket_width = hours ? "1h" : "1d";
      const asked = {
        start_time: today - (days - 1) * DAY_S,
        bucket_width,
        limit: PAGE,
        group_by,
      } as const;
      const data: UsageBucket[] = [];
      for await (const bucket of client.usage.list(asked, { signal })) data.push(bucket);
      const rows = data.flatMap((bucket) => bucket.results.map((result) => ({ bucket, result })));
      const header = [hours ? "hour" : "day", ...group_by, ...COUNTED];
      const table = { header, rowOf: (row: UsageRow) => rowOf(row, group_by, hours), none: "No usage.", room };
      return { json: { object: "page", data }, text: () => (csv ? usageCsv(data).trimEnd() : listText(rows, table)) };
    });
  },
});

interface UsageRow {
  readonly bucket: UsageBucket;
  readonly result: UsageResult;
}

const NAME_OF = {
  project: "project_id",
  key: "key_id",
  environment: "environment",
  model: "model",
  kind: "kind",
} as const satisfies Record<UsageGroup, keyof UsageResult>;

function rowOf({ bucket, result }: UsageRow, by: readonly UsageGroup[], hours: boolean): string[] {
  const at = timeText(bucket.start_time);
  const counts = [result.rollouts, result.turns, result.input_tokens, result.output_tokens, result.judge_calls];
  return [
    hours ? at : at.slice(0, "2026-11-23".length),
    ...by.map((group) => result[NAME_OF[group]] ?? ""),
    ...counts.map(countText),
    dollarsText(result.policy_micros + result.judge_micros),
    dollarsText(result.cost_micros),
  ];
}

function groupsOf(text: string | undefined): UsageGroup[] {
  const names = text?.split(",") ?? [];
  return names.map((name, at) => {
    const group = USAGE_GROUPS.find((known) => known === name);
    if (group !== undefined && names.indexOf(name) === at) return group;
    throw usageError(`--by: ${name || "nothing"} must be one of ${USAGE_GROUPS.join(", ")}, named once`, "by");
  });
}

const STATEMENTS = command({
  name: "statement list",
  reads: true,
  help: "list the statements of closed months, latest first",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await client.statements.list({ limit: 100 }, { signal });
      const header = ["month", "opening", "closing", "entries"];
      const row = ({ month, opening_micros, closing_micros, entries }: StatementView) => {
        return [month, dollarsText(opening_micros), dollarsText(closing_micros), countText(entries)];
      };
      const none = `No month is closed yet: try ${COMMAND} statement show 2026-11`;
      return { json: page, text: () => listText(page.data, { header, rowOf: row, none, room }) };
    });
  },
});

const STATEMENT = command({
  name: "statement show",
  takes: "<month>",
  reads: true,
  help: "show the charges and payments of a month, to the micro-dollar",
  more: "The month is written 2026-11. The current month shows the charges so far.",
  flags: { csv: { help: "print CSV for a spreadsheet, in micro-dollars" }, ...PLATFORM_FLAGS },
  run(line) {
    const month = line.one("a month");
    const csv = line.on("csv");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const statement = await client.statements.get(month, { signal });
      return {
        json: statement,
        text: () => (csv ? statementCsv(statement).trimEnd() : statementText(statement, room)),
      };
    });
  },
});

function statementText({ lines, ...statement }: StatementView, room: number): string {
  const { month, state, opening_micros, closing_micros, entries } = statement;
  const sums = [
    ["opening balance", dollarsText(opening_micros)],
    ...lines.map(({ account, micros }) => [account, dollarsText(micros)]),
    ["closing balance", dollarsText(closing_micros)],
  ];
  const head = details({ month: `${month}, ${state}`, entries: countText(entries) });
  return `${head}\n\n${columns(["account", "amount"], sums, room)}`;
}

export const USAGE_COMMANDS = [USAGE, STATEMENTS, STATEMENT] as const;
