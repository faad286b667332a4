/** `rollcall budget …`: the maximum that may be charged in a month. */

import { BUDGET_TARGETS, type BudgetView } from "../../billing/wire.ts";
import { COMMAND } from "../../local/package-root.ts";
import { defined } from "../argument-values.ts";
import { command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { dollarsText, timeText } from "../terminal/format.ts";
import { listText, safeDetails } from "../terminal/table.ts";
import { microsOf } from "./ledger.ts";

const HEADER = ["budget", "for", "a month", "spent", "reserved", "crossed"];
const LIMIT_FLAG = { value: "DOLLARS", help: "limit per month (UTC), such as 20 or 0.50" } as const;

const LIST = command({
  name: "budget list",
  reads: true,
  help: "list budgets, with this month's spending",
  flags: PLATFORM_FLAGS,
  run(line) {
    line.none();
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.budgets.list({ limit: 100 }, { signal }));
      const none = `No budgets. Create one with: ${COMMAND} budget create organization --limit DOLLARS`;
      return { json: page, text: () => listText(page.data, { header: HEADER, rowOf, none, room }) };
    });
  },
});

const CREATE = command({
  name: "budget create",
  takes: "<organization|project|key>",
  help: "limit the charges of a month: in total, or for a project, key or person",
  more: "Runs that it does not cover wait until it is raised or the month ends. New runs are refused.",
  flags: {
    target: { value: "ID", help: "a project (id or name), or a key or person (id)" },
    limit: LIMIT_FLAG,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const named = line.one("its target: organization, project or key");
    const target_kind = BUDGET_TARGETS.find((one) => one === named);
    if (target_kind === undefined) throw usageError(`${named} is not one of ${BUDGET_TARGETS.join(", ")}`);
    const target_id = line.text("target");
    if (target_kind !== "organization" && target_id === undefined) {
      throw usageError(`--target: is required for a ${target_kind}: --target ID`, "target");
    }
    const request = { target_kind, ...defined({ target_id }), limit_micros: microsOf(line, "limit") };
    return onPlatform(line, async ({ client, signal }) => {
      const budget = await client.budgets.create(request, { signal });
      return { json: budget, text: () => budgetText(budget) };
    });
  },
});

const SHOW = question({
  name: "budget show",
  takes: "<budget>",
  reads: true,
  help: "show a budget, with this month's spending",
  what: "the id of a budget",
  ask: (client, id, options) => client.budgets.get(id, options),
  text: budgetText,
});

const SET = command({
  name: "budget set",
  takes: "<budget>",
  help: "raise or lower a budget; waiting runs continue within seconds",
  flags: { limit: LIMIT_FLAG, ...PLATFORM_FLAGS },
  run(line) {
    const id = line.one("the id of a budget");
    const patch = { limit_micros: microsOf(line, "limit") };
    return onPlatform(line, async ({ client, signal }) => {
      const budget = await client.budgets.update(id, patch, { signal });
      return { json: budget, text: () => budgetText(budget) };
    });
  },
});

const DELETE = question({
  name: "budget delete",
  takes: "<budget>",
  help: "delete a budget: nothing is held back by it any more",
  what: "the id of a budget",
  ask: (client, id, options) => client.budgets.delete(id, options),
  text: ({ id }) => `Deleted ${id}`,
});

function budgetText(budget: BudgetView): string {
  return safeDetails({
    budget: budget.id,
    for: `${budget.target_kind} ${budget.target_id}`,
    "a month": dollarsText(budget.limit_micros),
    "spent this month": dollarsText(budget.spent_micros),
    reserved: dollarsText(budget.reserved_micros),
    crossed: crossedText(budget) || null,
    changed: timeText(budget.updated_at),
  });
}

function rowOf(budget: BudgetView): string[] {
  const { id, target_kind, target_id, limit_micros, spent_micros, reserved_micros } = budget;
  const amounts = [limit_micros, spent_micros, reserved_micros].map(dollarsText);
  return [id, target_kind === "organization" ? target_kind : target_id, ...amounts, crossedText(budget)];
}

function crossedText({ thresholds_crossed }: BudgetView): string {
  return thresholds_crossed.map((percent) => `${percent} %`).join(", ");
}

export const BUDGET_COMMANDS = [LIST, CREATE, SHOW, SET, DELETE] as const;
