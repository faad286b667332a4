/**
 * Reports that spending has crossed a threshold of a budget: always with a log line; with events for webhooks; and with
 * an e-mail to the organisation's owners if the deployment can send one. A notice is delivered at least once.
 */

import { logNotice } from "../../kernel/kit/log.ts";
import { mailOwners } from "../../kernel/kit/mail-owners.ts";
import type { OutboundEvent } from "../../kernel/kit/slice-hooks.ts";
import { emitEvents, emitOrganizationEvents } from "../../kernel/kit/slice-hooks.ts";
import type { Subrequests } from "../../kernel/kit/subrequests.ts";
import type { Notice } from "./budgets.ts";
import { dollars } from "./reservations.ts";

/** Throws if a webhook could not be notified, an e-mail was refused, or the owners cannot be read. */
export async function deliverNotice(env: Env, subrequests: Subrequests, orgId: string, notice: Notice): Promise<void> {
  const { at: _, crossed_in: _project, ...data } = notice;
  logNotice("budget.threshold", { org_id: orgId, ...data });
  await notifyWebhooks(env, subrequests, orgId, notice);
  await mailOwners(env, subrequests, orgId, { subject: subjectOf(notice), text: textOf(orgId, notice) });
}

/**
 * A project's budget notifies that project. A key's budget notifies the project whose run crossed the threshold. The
 * organisation's budget notifies every project whose webhooks name the event.
 */
async function notifyWebhooks(env: Env, subrequests: Subrequests, orgId: string, notice: Notice): Promise<void> {
  const projectId = notice.target_kind === "project" ? notice.target_id : (notice.crossed_in ?? null);
  const events = [eventOf(notice)];
  if (notice.target_kind === "organization") await emitOrganizationEvents(env, orgId, events, subrequests);
  else if (projectId !== null) await emitEvents(env, { orgId, projectId }, events, subrequests);
}

function eventOf({ at, crossed_in: _, ...data }: Notice): OutboundEvent {
  const { budget_id, month, percent } = data;
  return {
    id: `evt_${budget_id.slice(budget_id.indexOf("_") + 1)}_${month.replace("-", "")}_${percent}`,
    type: percent >= 100 ? "budget.exhausted" : "budget.threshold",
    at,
    subject: budget_id,
    data: { ...data },
    path: `/v1/budgets/${budget_id}`,
  };
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
  return `${spent}\n\nAt 100 % its runs wait until the budget ${budget_id} is raised or the next month begins.\n`;
}
