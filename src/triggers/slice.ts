/** Triggers: addresses where webhooks of other platforms start runs. */

import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import type { Slice } from "../kernel/http/slice.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { deleteTrigger, someTriggers } from "./queries.ts";
import { triggerOperations } from "./routes.ts";
import { triggerObject } from "./rpc.ts";
import { triggers as triggerTable } from "./tables.ts";

const AT_ONCE = 100;

/** Frees each object before its row is deleted, so that a repeated call finds what is left. */
async function stopProject(env: Env, scope: Scope, subrequests: Subrequests): Promise<number> {
  const ids = await subrequests.fetch(() => someTriggers(databaseOf(env), scope, AT_ONCE));
  for (const trigger_id of ids) {
    await subrequests.object(() => triggerObject(env, { scope, trigger_id }).free());
    await subrequests.fetch(() => deleteTrigger(databaseOf(env), scope, trigger_id));
  }
  return ids.length;
}

export const triggers: Slice = {
  operations: triggerOperations,
  hooks: { stopProject },
  tables: {
    ofProject: [triggerTable],
    sealed: { trigger: { table: triggerTable, column: triggerTable.sealed_secret } },
  },
};
