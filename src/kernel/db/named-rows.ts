/**
 * The queries that all tables with ids and names in a project share: secrets, endpoints, fleets, triggers. They ignore
 * rows without a name, which were deleted or belong to one run.
 */
import { eq, isNotNull, or } from "drizzle-orm";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { violatedTable } from "./idempotency-keys.ts";
import { type Page, pageOf } from "./page.ts";
import { type Changes, type Column, type Condition, inProject, type ProjectTable } from "./scoped.ts";

interface NamedTable extends ProjectTable {
  readonly id: Column<string>;
  readonly name: Column<string | null>;
  readonly created_at: Column<number>;
  readonly $inferSelect: { readonly id: string; readonly name: string | null };
}
/** A row that these queries return. */
export type Named<T extends NamedTable> = T["$inferSelect"] & { readonly name: string };

export function namedRows<T extends NamedTable>(table: T) {
  const isNamed = (row: T["$inferSelect"]): row is Named<T> => row.name !== null;
  return {
    /** By id or name. If a text is the id of one row and the name of another, the id counts. */
    async find(database: Database, scope: Scope, nameOrId: string): Promise<Named<T> | null> {
      const meant = or(eq(table.id, nameOrId), eq(table.name, nameOrId));
      const rows = (await inProject(database, scope).select(table, isNotNull(table.name), meant)).filter(isNamed);
      return rows.find(({ id }) => id === nameOrId) ?? rows[0] ?? null;
    },

    /** By time of creation, then id; at most `page.limit` rows. */
    async list(database: Database, scope: Scope, page: Page): Promise<Named<T>[]> {
      const select = (beyond: Condition) => inProject(database, scope).select(table, isNotNull(table.name), beyond);
      return (await pageOf(table, page, select)).filter(isNamed);
    },

    /** Changes one row; null if none meets the conditions. `taken`: another row has the name. */
    async update(
      database: Database,
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
