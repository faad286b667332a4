/** Queries for triggers. Secrets are sealed before they are stored. */
import { and, eq, isNull } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { databaseNumberIn } from "../core/ids.ts";
import type { Database } from "../kernel/db/database.ts";
import { insertWithin, type Kept, type Remembered } from "../kernel/db/idempotency-keys.ts";
import { namedRows } from "../kernel/db/named-rows.ts";
import { seconds } from "../kernel/db/page.ts";
import { organizations, projects } from "../kernel/db/schema.ts";
import { inProject, unscoped } from "../kernel/db/scoped.ts";
import { nextDue } from "./schedule.ts";
import { type TriggerRow, triggers } from "./tables.ts";
import type { TriggerView } from "./wire.ts";

export type NewTrigger = Omit<TriggerRow, "org_id" | "project_id">;
export type TriggerChanges = Partial<Omit<NewTrigger, "id" | "scheme" | "created_at">> & Pick<NewTrigger, "updated_at">;

/** By id alone, since a delivery names no project. Null if there is none, or its project is being deleted. */
export async function triggerAnywhere(database: Database, id: string): Promise<TriggerRow | null> {
  const rows = await unscoped(database.at(databaseNumberIn(id)), "trigger by id")
    .select({ trigger: triggers })
    .from(triggers)
    .innerJoin(organizations, and(eq(organizations.id, triggers.org_id), isNull(organizations.deleted_at)))
    .innerJoin(projects, and(eq(projects.id, triggers.project_id), eq(projects.org_id, triggers.org_id)))
    .where(and(eq(triggers.id, id), isNull(projects.deleted_at)));
  return rows[0]?.trigger ?? null;
}

export const { find: findTrigger, list: listTriggers, update: updateTrigger } = namedRows(triggers);

export async function getTrigger(database: Database, scope: Scope, id: string): Promise<TriggerRow | null> {
  const rows = await inProject(database, scope).select(triggers, eq(triggers.id, id));
  return rows[0] ?? null;
}

/** Ids of a project's triggers, at most `limit`. */
export async function someTriggers(database: Database, scope: Scope, limit: number): Promise<string[]> {
  const rows = await inProject(database, scope).columns({ id: triggers.id }, triggers).limit(limit);
  return rows.map(({ id }) => id);
}

/** `full`: the project has the maximum number of triggers. */
export function insertTrigger(
  database: Database,
  scope: Scope,
  trigger: NewTrigger,
  made: Remembered | null,
): Promise<Kept | "full"> {
  return insertWithin(database, scope, triggers, trigger, made, { atMost: LIMITS.triggersPerProject });
}

export async function deleteTrigger(database: Database, scope: Scope, id: string): Promise<void> {
  await inProject(database, scope).delete(triggers, eq(triggers.id, id));
}

/** A trigger on the wire, field by field, without the secret. `origin`: the platform's origin in the request. */
export function triggerViewOf(trigger: NewTrigger, origin: string, now: number): TriggerView {
  const { id, name, scheme, run, map, when, concurrency, schedule, created_by } = trigger;
  const next = schedule === null || trigger.disabled_at !== null ? null : nextDue(schedule, now);
  return {
    object: "trigger",
    ...{ id, name, url: `${origin}/hooks/${id}`, verify: { scheme } },
    schedule,
    next_at: next === null ? null : seconds(next),
    ...{ run: { ...run }, map: { ...map }, when: when as TriggerView["when"], concurrency },
    disabled: trigger.disabled_at !== null,
    created_by,
    created_at: seconds(trigger.created_at),
    updated_at: seconds(trigger.updated_at),
  };
}
