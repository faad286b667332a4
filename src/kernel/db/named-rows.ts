/**
 * The queries that every table of a project with ids and names has, written once: secrets, endpoints, fleets, triggers.
 * A row without a name is not there for them: it was deleted, or belongs to one run.
 */
import { eq, isNotNull, or } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import { violatedTable } from "./idempotency-keys.ts";
import { type Page, pageOf } from "./page.ts";
import { type Changes, type Column, type Condition, inProject, type ProjectTable } from "./scoped.ts";

interface NamedTable extends ProjectTable {
  readonly id: Column<string>;
  readonly name: Column<string | null>;
  readonly created_at: Column<number>;
  readonly $inferSelect: { readonly id: string; readonly name: string | null };
}
/** A row as these queries give it. */
export type Named<T extends NamedTable> = T["$inferSelect"] & { readonly name: string };

export function namedRows<T extends NamedTable>(table: T) {
  const isNamed = (row: T["$inferSelect"]): row is Named<T> => row.name !== null;
  return {
    /** By id or name. One's name may read like another's id, and then the id is meant. */
    async find(database: D1Database, scope: Scope, nameOrId: string): Promise<Named<T> | null> {
      const meant = or(eq(table.id, nameOrId), eq(table.name, nameOrId));
      const rows = (await inProject(database, scope).select(table, isNotNull(table.name), meant)).filter(isNamed);
      return rows.find(({ id }) => id === nameOrId) ?? rows[0] ?? null;
    },

    /** By time of creation, then id; at most `page.limit` of them. */
    async list(database: D1Database, scope: Scope, page: Page): Promise<Named<T>[]> {
      const select = (beyond: Condition) => inProject(database, scope).select(table, isNotNull(table.name), beyond);
      return (await pageOf(table, page, select)).filter(isNamed);
    },

    /** Changes one row; null where there is none that meets the conditions. `taken`: another has the name. */
    async update(
      database: D1Database,
      scope: Scope,
      id: string,
      changes: Changes<T, "org_id" | "project_id">,
      ...conditions: Condition[]
    ): Promise<Named<T> | "taken" | null> {
      const meant = [eq(table.id, id), isNotNull(table.name), ...conditions];
      try {
        const rows = await inProject(database, scope)
          .update(table, changes, ...meant)
          .returning();
        return rows.find(isNamed) ?? null;
      } catch (thrown) {
        if (violatedTable(thrown) === null) throw thrown;
        return "taken";
      }
    },
  };
}
