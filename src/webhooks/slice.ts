/** Webhook endpoints: addresses that receive events. */

import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import type { Slice } from "../kernel/http/slice.ts";
import type { OwnedObject } from "../kernel/kit/slice-hooks.ts";
import { webhookListener } from "./emit.ts";
import { webhooksOfProject } from "./queries.ts";
import { webhookOperations } from "./routes.ts";
import { webhookObject } from "./rpc.ts";
import { webhookEndpoints, webhookSecrets } from "./tables.ts";

async function objectsOfProject(env: Env, scope: Scope, limit: number): Promise<OwnedObject[]> {
  const ids = await webhooksOfProject(databaseOf(env), scope, limit);
  return ids.map((id) => async () => {
    await webhookObject(env, scope, id).free();
    return true;
  });
}

export const webhooks: Slice = {
  operations: webhookOperations,
  hooks: { events: webhookListener, objectsOfProject },
  tables: {
    ofProject: [webhookEndpoints, webhookSecrets],
    sealed: { webhook_secret: { table: webhookSecrets, column: webhookSecrets.sealed_secret } },
  },
};
