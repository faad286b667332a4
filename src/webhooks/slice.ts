/** Webhook endpoints: addresses that are told of events. */
import type { Slice } from "../api/slice.ts";
import type { Scope } from "../contract/scope.ts";
import type { Subrequests } from "../runtime/kit/subrequests.ts";
import { webhookListener } from "./emit.ts";
import { webhooksOfProject } from "./queries.ts";
import { webhookOperations } from "./routes.ts";
import { webhookObject } from "./rpc.ts";

async function freeProject(env: Env, scope: Scope, subrequests: Subrequests): Promise<void> {
  const ids = await subrequests.fetch(() => webhooksOfProject(env.DB, scope));
  await subrequests.objectAll(ids, (id) => webhookObject(env, scope, id).free());
}

export const webhooks: Slice = { operations: webhookOperations, hooks: { events: webhookListener, freeProject } };
