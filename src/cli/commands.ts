/** Lists every command, in the order of the help. `commands/` defines them, one file per noun. */
import type { Command } from "./command-line.ts";
import { AGENT_COMMANDS } from "./commands/agent.ts";
import { AUDIT_LOG } from "./commands/audit-log.ts";
import { BUDGET_COMMANDS } from "./commands/budget.ts";
import { completionCommand } from "./commands/completion.ts";
import { DATASET_COMMANDS } from "./commands/dataset.ts";
import { DELETION_COMMANDS } from "./commands/deletion.ts";
import { DEPLOY_COMMANDS } from "./commands/deploy.ts";
import { ENDPOINT_COMMANDS } from "./commands/endpoint.ts";
import { ENV_COMMANDS } from "./commands/env.ts";
import { ENV_HUB_COMMANDS } from "./commands/env-hub.ts";
import { ENV_PUBLISH_COMMANDS } from "./commands/env-publish.ts";
import { ENV_RESULTS } from "./commands/env-results.ts";
import { EVAL_COMMANDS, START } from "./commands/eval.ts";
import { FLEET_COMMANDS } from "./commands/fleet.ts";
import { FLEET_REPLICA_COMMANDS } from "./commands/fleet-replica.ts";
import { INVITATION_COMMANDS } from "./commands/invitation.ts";
import { KEY_COMMANDS } from "./commands/key.ts";
import { LEDGER_COMMANDS } from "./commands/ledger.ts";
import { LOGIN_COMMANDS } from "./commands/login.ts";
import { ORG_COMMANDS } from "./commands/org.ts";
import { PERSON_COMMANDS } from "./commands/person.ts";
import { PROJECT_COMMANDS } from "./commands/project.ts";
import { REVIEW_COMMANDS } from "./commands/review.ts";
import { ROLLOUT_COMMANDS } from "./commands/rollout.ts";
import { RUN_COMMANDS } from "./commands/run.ts";
import { RUN_ROLLOUTS_COMMANDS } from "./commands/run-rollouts.ts";
import { RUN_ROWS_COMMANDS } from "./commands/run-rows.ts";
import { RUN_SHARE_COMMANDS } from "./commands/run-share.ts";
import { SECRET_COMMANDS } from "./commands/secret.ts";
import { SERVE } from "./commands/serve.ts";
import { TRIGGER_COMMANDS } from "./commands/trigger.ts";
import { USAGE_COMMANDS } from "./commands/usage.ts";
import { VIEW } from "./commands/view.ts";
import { WEBHOOK_COMMANDS } from "./commands/webhook.ts";

const BUT_COMPLETION = [
  ...EVAL_COMMANDS,
  ...RUN_COMMANDS,
  ...RUN_ROLLOUTS_COMMANDS,
  ...RUN_ROWS_COMMANDS,
  ...RUN_SHARE_COMMANDS,
  ...DELETION_COMMANDS,
  ...ROLLOUT_COMMANDS,
  ...REVIEW_COMMANDS,
  ...AGENT_COMMANDS,
  ...DATASET_COMMANDS,
  ...ENDPOINT_COMMANDS,
  ...FLEET_COMMANDS,
  ...FLEET_REPLICA_COMMANDS,
  ...SECRET_COMMANDS,
  ...WEBHOOK_COMMANDS,
  ...TRIGGER_COMMANDS,
  ...ENV_COMMANDS,
  ...ENV_HUB_COMMANDS,
  ...ENV_PUBLISH_COMMANDS,
  ENV_RESULTS,
  ...LOGIN_COMMANDS,
  ...ORG_COMMANDS,
  ...PROJECT_COMMANDS,
  ...KEY_COMMANDS,
  ...PERSON_COMMANDS,
  ...INVITATION_COMMANDS,
  ...LEDGER_COMMANDS,
  ...BUDGET_COMMANDS,
  AUDIT_LOG,
  ...USAGE_COMMANDS,
  VIEW,
  SERVE,
  START,
  ...DEPLOY_COMMANDS,
] as const satisfies readonly Command[];

export const COMMANDS = [...BUT_COMPLETION, completionCommand(BUT_COMPLETION)] as const;

/** "run list", "eval", … */
export type CommandName = (typeof COMMANDS)[number]["name"];

/** The command that a line of words starts with, and the words after its name. */
export function findCommand(words: readonly string[]): [CommandName, readonly string[]] | null {
  const found = COMMANDS.find(({ name }) => {
    return name.split(" ").every((word, at) => words[at] === word);
  });
  return found === undefined ? null : [found.name, words.slice(found.name.split(" ").length)];
}
