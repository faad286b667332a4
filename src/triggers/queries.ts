/** Triggers: what begins a run when somebody else's webhook comes. Secrets are sealed before they get here. */
import { and, count, eq, isNull, or, sql } from "drizzle-orm";
import { LIMITS } from "../contract/limits.ts";
import type { Scope } from "../contract/scope.ts";
import { type TriggerRow, triggers } from "../db/doors-schema.ts";
import { insertOnce, type Kept, type Remembered, violatedTable } from "../db/idempotency-keys.ts";
import { type Page, pageOf, seconds } from "../db/page.ts";
import { organizations, projects } from "../db/schema.ts";
import { inProject, unscoped } from "../db/scoped.ts";
import type { TriggerView } from "./wire.ts";

export type NewTrigger = Omit<TriggerRow, "org_id" | "project_id">;
export type TriggerChanges = Partial<Omit<NewTrigger, "id" | "scheme" | "created_at">> & Pick<NewTrigger, "updated_at">;

/** By the id alone, for a delivery that says nothing else; null where there is none, or its project goes. */
export async function triggerAnywhere(database: D1Database, id: string): Promise<TriggerRow | null> {
  const rows = await unscoped(database, "trigger by id")
    .select({ trigger: triggers })
    .from(triggers)
    .innerJoin(organizations, and(eq(organizations.id, triggers.org_id), isNull(organizations.deleted_at)))
    .innerJoin(projects, and(eq(projects.id, triggers.project_id), eq(projects.org_id, triggers.org_id)))
    .where(and(eq(triggers.id, id), isNull(projects.deleted_at)));
  return rows[0]?.trigger ?? null;
}

/** By id or name. One's name may read like another's id, and then the id is meant. */
export async function findTrigger(database: D1Database, scope: Scope, nameOrId: string): Promise<TriggerRow | null> {
  const named = or(eq(triggers.name, nameOrId), eq(triggers.id, nameOrId));
  const rows = await inProject(database, scope).select(triggers, named);
  return rows.find(({ id }) => id === nameOrId) ?? rows[0] ?? null;
}

export async function getTrigger(database: D1Database, scope: Scope, id: string): Promise<TriggerRow | null> {
  const rows = await inProject(database, scope).select(triggers, eq(triggers.id, id));
  return rows[0] ?? null;
}

/** By time of creation, then id; at most `page.limit` of them. */
export async function listTriggers(database: D1Database, scope: Scope, page: Page): Promise<TriggerRow[]> {
  return await pageOf(triggers, page, (beyond) => inProject(database, scope).select(triggers, beyond));
}

/** Ids of a project's triggers, at most so many. */
export async function someTriggers(database: D1Database, scope: Scope, limit: number): Promise<string[]> {
  const rows = await inProject(database, scope).columns({ id: triggers.id }, triggers).limit(limit);
  return rows.map(({ id }) => id);
}

/** `full`: the project has as many as it may. */
export async function insertTrigger(
  database: D1Database,
  scope: Scope,
  trigger: NewTrigger,
  made: Remembered | null,
): Promise<Kept | "full"> {
  const there = inProject(database, scope).columns({ count: count() }, triggers);
  const also = sql`(${there}) < ${LIMITS.triggersPerProject}`;
  const kept = await insertOnce(database, scope, triggers, trigger, made, { also });
  if (kept !== "gone") return kept;
  const [{ count: had } = { count: 0 }] = await there;
  return had >= LIMITS.triggersPerProject ? "full" : "gone";
}

/** `taken`: another has the name; null: it is there no more. */
export async function updateTrigger(
  database: D1Database,
  scope: Scope,
  id: string,
  changes: TriggerChanges,
): Promise<TriggerRow | "taken" | null> {
  try {
    const rows = await inProject(database, scope).update(triggers, changes, eq(triggers.id, id)).returning();
    return rows[0] ?? null;
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

export async function deleteTrigger(database: D1Database, scope: Scope, id: string): Promise<void> {
  await inProject(database, scope).delete(triggers, eq(triggers.id, id));
}

/** In the shape of the wire, member by member: the secret is not for it. `origin`: the platform's, as it was addressed. */
export function triggerViewOf(trigger: NewTrigger, origin: string): TriggerView {
  const { id, name, scheme, run, map, when, concurrency, created_by } = trigger;
  return {
    object: "trigger",
    ...{ id, name, url: `${origin}/hooks/${id}`, verify: { scheme } },
    ...{ run: { ...run }, map: { ...map }, when: when as TriggerView["when"], concurrency },
    disabled: trigger.disabled_at !== null,
    created_by,
    created_at: seconds(trigger.created_at),
    updated_at: seconds(trigger.updated_at),
  };
}
