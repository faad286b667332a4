/**
 * Tells an organisation's owners that a threshold of a budget is crossed: a line of the log, always, and an e-mail where
 * the deployment can send one. What is delivered may be delivered again, and is never lost.
 */
import { ownersOf } from "../../db/ledger.ts";
import { logNotice } from "../kit/log.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { Notice } from "./budgets.ts";
import { dollars } from "./holds.ts";

/** Owners who are written to. */
const ADDRESSES = 20;

/** Throws where an e-mail was refused, or owners cannot be read. */
export async function deliverNotice(env: Env, subrequests: Subrequests, orgId: string, notice: Notice): Promise<void> {
  logNotice("budget.threshold", { org_id: orgId, ...notice });
  const { ALERTS, ALERTS_FROM } = env;
  if (ALERTS === undefined || ALERTS_FROM === undefined) return;
  const addresses = await subrequests.fetch(() => ownersOf(env.DB, orgId, ADDRESSES));
  if (addresses.length === 0) return;
  const letter = { from: ALERTS_FROM, to: addresses, subject: subjectOf(notice), text: textOf(orgId, notice) };
  await subrequests.fetch(() => ALERTS.send(letter));
}

function subjectOf({ percent, target_kind }: Notice): string {
  return `${percent} % of this month's budget of the ${target_kind} is spent`;
}

function textOf(
  orgId: string,
  { month, target_kind, target_id, limit_micros, spent_micros, budget_id }: Notice,
): string {
  const of = target_kind === "organization" ? `organization ${orgId}` : `${target_kind} ${target_id} of ${orgId}`;
  const spent = `${dollars(spent_micros)} of ${dollars(limit_micros)} were spent in ${month} (UTC) by ${of}.`;
  return `${spent}\n\nAt 100 % its runs wait, until the budget ${budget_id} is raised or the next month begins.\n`;
}
