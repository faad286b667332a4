/**
 * Tells an organisation's owners that a threshold of a budget is crossed: a line of the log, always, and an e-mail where
 * the deployment can send one. What is delivered may be delivered again, and is never lost.
 */
import { logNotice } from "../kit/log.ts";
import { mailOwners } from "../kit/mail-owners.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { Notice } from "./budgets.ts";
import { dollars } from "./holds.ts";

/** Throws where an e-mail was refused, or owners cannot be read. */
export async function deliverNotice(env: Env, subrequests: Subrequests, orgId: string, notice: Notice): Promise<void> {
  logNotice("budget.threshold", { org_id: orgId, ...notice });
  await mailOwners(env, subrequests, orgId, { subject: subjectOf(notice), text: textOf(orgId, notice) });
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
