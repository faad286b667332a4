/**
 * Sends events to the webhook endpoints that want them. If none does, an event only costs a look-up in a list that the
 * isolate caches.
 *
 * Invariants. A call returns when every endpoint that wants the events has them on disk, and throws otherwise. The
 * caller keeps its events until the call has returned, and sends them again after an error. An event that is sent twice
 * with the same id is delivered once.
 */
import type { Scope } from "../contract/scope.ts";
import { databaseOf } from "../kernel/db/database.ts";
import { OUTAGE_MS, SETTINGS_KEPT_MS, SETTINGS_RENEWED_MS, TtlCache } from "../kernel/kit/caches.ts";
import { PROCESS_PACE } from "../kernel/kit/request-pace.ts";
import type { EventListener, OutboundEvent } from "../kernel/kit/slice-hooks.ts";
import type { Subrequests } from "../kernel/kit/subrequests.ts";
import { type Listening, webhooksListening, webhooksNaming } from "./queries.ts";
import { webhookObject } from "./rpc.ts";
import { wants } from "./rules.ts";

/** How long the list is cached: a new or changed endpoint receives events after at most this time. */
const known = new TtlCache<readonly Listening[]>(SETTINGS_KEPT_MS, SETTINGS_RENEWED_MS, OUTAGE_MS);
/** The most endpoints of one organisation that receive the organisation's budget events. */
const MOST_OF_ORGANIZATION = 100;

/** CPU of storing an event at one endpoint, in milliseconds. */
const ENQUEUE_COST_MS = 3;

type Address = Listening & { readonly scope: Scope };

/** Sends events to the endpoints of the project. */
async function notifyProject(
  env: Env,
  scope: Scope,
  events: readonly OutboundEvent[],
  subrequests: Subrequests,
): Promise<void> {
  if (events.length === 0) return;
  const list = await listeningIn(env, scope, subrequests);
  await notify(
    env,
    list.map((one) => ({ ...one, scope })),
    events,
    subrequests,
  );
}

async function isWanted(env: Env, scope: Scope, types: readonly string[], subrequests: Subrequests): Promise<boolean> {
  const list = await listeningIn(env, scope, subrequests);
  return list.some(({ events }) => types.some((type) => wants(events, type)));
}

/** Sends events to endpoints in any project of the organisation that name the event or its family. */
async function notifyOrganization(
  env: Env,
  orgId: string,
  events: readonly OutboundEvent[],
  subrequests: Subrequests,
): Promise<void> {
  const family = events[0]?.type.split(".")[0];
  if (family === undefined) return;
  const found = await subrequests.fetch(() => webhooksNaming(databaseOf(env), orgId, family, MOST_OF_ORGANIZATION));
  const addresses = found.map(({ project_id, ...one }) => ({ ...one, scope: { orgId, projectId: project_id } }));
  await notify(env, addresses, events, subrequests);
}

/** For a change of the project's endpoints in this isolate. Other isolates see the change within five seconds. */
export function forgetListening(scope: Scope): void {
  known.forget(nameOf(scope));
}

function nameOf({ orgId, projectId }: Scope): string {
  return `${orgId}/${projectId}`;
}

function listeningIn(env: Env, scope: Scope, subrequests: Subrequests): Promise<readonly Listening[]> {
  const read = () => subrequests.fetch(() => webhooksListening(databaseOf(env), scope));
  return known.get(nameOf(scope), Date.now(), read);
}

async function notify(
  env: Env,
  addresses: readonly Address[],
  events: readonly OutboundEvent[],
  subrequests: Subrequests,
): Promise<void> {
  const failures: unknown[] = [];
  const wanting = addresses
    .map((address) => ({ ...address, wanted: events.filter(({ type }) => wants(address.events, type)) }))
    .filter(({ wanted }) => wanted.length > 0);
  for (const { scope } of wanting) PROCESS_PACE.charge(scope.orgId, ENQUEUE_COST_MS, Date.now());
  await subrequests.objectAll(wanting, async ({ scope, id, wanted }) => {
    try {
      await webhookObject(env, scope, id).enqueue({ scope, webhook_id: id }, wanted);
    } catch (thrown) {
      // The other endpoints still receive the events.
      failures.push(thrown);
    }
  });
  if (failures.length > 0) throw failures[0];
}

export const webhookListener: EventListener = { isWanted, notify: notifyProject, notifyOrganization };
