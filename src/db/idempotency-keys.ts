/**
 * What an Idempotency-Key made. The key is written in the same batch as its resource, so that both are there or
 * neither, and of two requests with one key at the same moment only one makes something: the other's batch fails.
 */
import { eq, type SQL } from "drizzle-orm";
import { ofOrganization, type Scope } from "../contract/scope.ts";
import { idempotencyKeys } from "./schema.ts";
import { inProject, type Statement } from "./scoped.ts";

export interface Remembered {
  /** The operation's id, such as `createEndpoint`. */
  readonly operation: string;
  readonly key: string;
  /** Keyed hash of the request (`keyedHash` of runtime/kit/secrets.ts), never a plain one. */
  readonly request_hash: string;
  readonly resource_id: string;
  readonly created_at: number;
}

/** What the key made before; null for a key that is new to this operation. */
export async function recall(
  database: D1Database,
  scope: Scope,
  operation: string,
  key: string,
): Promise<Remembered | null> {
  const { operation: ofOperation, key: ofKey } = idempotencyKeys;
  const rows = await inProject(database, scope).select(idempotencyKeys, eq(ofOperation, operation), eq(ofKey, key));
  return rows[0] ?? null;
}

/** Runs the insert of a resource and writes what its key made, both or neither. `taken`: its name or the key is. */
export async function insertOnce(
  database: D1Database,
  scope: Scope,
  insert: Statement<unknown>,
  made: Remembered | null,
): Promise<"inserted" | "taken"> {
  const project = inProject(database, scope);
  const remembering = made === null ? [] : [project.insert(idempotencyKeys, made)];
  try {
    await project.batch([insert, ...remembering]);
    return "inserted";
  } catch (thrown) {
    if (violatedTable(thrown) === null) throw thrown;
    return "taken";
  }
}

/** The statement that writes what the key made in an organisation, if the condition holds by then; none without a key. */
export function rememberIf(
  database: D1Database,
  orgId: string,
  condition: SQL,
  made: Remembered | null,
): Statement<unknown>[] {
  if (made === null) return [];
  return [inProject(database, ofOrganization(orgId)).insertIf(condition, idempotencyKeys, made)];
}

/**
 * The table whose unique constraint refused the write, or null for any other failure: SQLite names the columns in its
 * message, and nowhere else.
 */
export function violatedTable(thrown: unknown): string | null {
  for (let link = thrown; link instanceof Error; link = link.cause) {
    const table = /UNIQUE constraint failed: (\w+)\./.exec(link.message)?.[1];
    if (table !== undefined) return table;
  }
  return null;
}
