/**
 * What each Idempotency-Key created. The key is written in the same batch as its resource, so both exist or neither. Of
 * two simultaneous requests with one key only one creates something: the batch of the other fails.
 */
import { count, eq, exists, type SQL, sql } from "drizzle-orm";
import { ofOrganization, type Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { idempotencyKeys } from "./schema.ts";
import {
  type Column,
  type Condition,
  type InProject,
  inProject,
  isOpenProject,
  type ProjectTable,
  type Statement,
  type Write,
} from "./scoped.ts";

export interface Remembered {
  /** The operation's id, such as `createEndpoint`. */
  readonly operation: string;
  readonly key: string;
  /** Keyed hash of the request (`keyedHash` of kernel/kit/secrets.ts), never a plain hash. */
  readonly request_hash: string;
  readonly resource_id: string;
  readonly created_at: number;
}

/** What the key created before; null if the key is new to this operation. */
export async function recall(
  database: Database,
  scope: Scope,
  operation: string,
  key: string,
): Promise<Remembered | null> {
  const { operation: ofOperation, key: ofKey } = idempotencyKeys;
  const rows = await inProject(database, scope).select(idempotencyKeys, eq(ofOperation, operation), eq(ofKey, key));
  return rows[0] ?? null;
}

/** The result of writing a resource. `taken`: its name or its key exists; `gone`: its project is being deleted. */
export type Kept = "inserted" | "taken" | "gone";

interface Keepable extends ProjectTable {
  readonly id: Column<string>;
}
/** Columns that are not given are null. */
export type NewRow<T extends Keepable> = Omit<T["$inferInsert"], "org_id" | "project_id"> & { readonly id: string };

/**
 * Writes a resource and the record of its key, both or neither, if its project is open, together with the rows that
 * belong to it (`beside`). `also`: a further condition; if it fails, the result is `gone` too.
 */
export async function insertOnce<T extends Keepable>(
  database: Database,
  scope: Scope,
  table: T,
  row: NewRow<T>,
  made: Remembered | null,
  { also, beside = [] }: { readonly also?: SQL; readonly beside?: readonly Write<unknown>[] } = {},
): Promise<Kept> {
  const project = inProject(database, scope);
  const open = also === undefined ? isOpenProject(database, scope) : sql`${isOpenProject(database, scope)} and ${also}`;
  const insert = project.insertIf(open, table, row).returning({ id: table.id });
  // Not the same condition again: after the last allowed row was inserted, it would no longer hold.
  const remembering = made === null ? [] : [project.insertIf(isThere(project, table, row.id), idempotencyKeys, made)];
  try {
    const [inserted] = await project.batch([insert, ...remembering, ...beside]);
    return inserted.length === 1 ? "inserted" : "gone";
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

/**
 * The same for a project that may have at most `atMost` rows (of those that `counted` selects). `full`: it has as many.
 */
export async function insertWithin<T extends Keepable>(
  database: Database,
  scope: Scope,
  table: T,
  row: NewRow<T>,
  made: Remembered | null,
  {
    atMost,
    counted,
    beside = [],
  }: { readonly atMost: number; readonly counted?: Condition; readonly beside?: readonly Write<unknown>[] },
): Promise<Kept | "full"> {
  const there = inProject(database, scope).columns({ n: count() }, table, counted);
  const kept = await insertOnce(database, scope, table, row, made, { also: sql`(${there}) < ${atMost}`, beside });
  if (kept !== "gone") return kept;
  const [{ n } = { n: 0 }] = await there;
  return n >= atMost ? "full" : "gone";
}

/** Whether a row exists, after the statement that should have inserted it. */
export function isThere(project: InProject, table: Keepable, id: string): SQL {
  return exists(project.columns({ id: table.id }, table, eq(table.id, id)));
}

/** Writes a key of an organisation alone, before its resource is created elsewhere. An existing key is unchanged. */
export async function remember(database: Database, orgId: string, made: Remembered): Promise<void> {
  await inProject(database, ofOrganization(orgId)).insert(idempotencyKeys, made).onConflictDoNothing();
}

/**
 * The statement that records what the key created in an organisation, if the condition holds then; none without a key.
 */
export function rememberIf(
  database: Database,
  orgId: string,
  condition: SQL,
  made: Remembered | null,
): Statement<unknown>[] {
  if (made === null) return [];
  return [inProject(database, ofOrganization(orgId)).insertIf(condition, idempotencyKeys, made)];
}

/**
 * The table whose unique constraint refused the write; null for any other failure. SQLite names the columns only in its
 * message.
 */
export function violatedTable(thrown: unknown): string | null {
  for (let link = thrown; link instanceof Error; link = link.cause) {
    const table = /UNIQUE constraint failed: (\w+)\./.exec(link.message)?.[1];
    if (table !== undefined) return table;
  }
  return null;
}
