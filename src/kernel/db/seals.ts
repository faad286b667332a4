/**
 * Values that are kept sealed, wherever they stand. A seal begins with the id of the key it was made under, up to a dot.
 *
 * Invariant. A seal is replaced only while it is still the one that was read: what was set meanwhile stays.
 */
import { and, eq, gt, inArray, ne, notInArray, type SQL, sql } from "drizzle-orm";
import { SEALED_KINDS, type SealedKind } from "../../contract/reseal.ts";
import type { Scope } from "../../contract/scope.ts";
import { endpoints, runs, secrets } from "./schema.ts";
import { inProject, unscoped } from "./scoped.ts";
import { type SealedValues, sealedValues } from "./slice-tables.ts";

const SEALED: Readonly<Partial<Record<SealedKind, SealedValues>>> = {
  endpoint: { table: endpoints, column: endpoints.sealed_key },
  secret: { table: secrets, column: secrets.sealed_value },
  push_secret: { table: runs, column: runs.sealed_push_secret },
};

/** Null: this platform keeps no such values. */
function valuesOf(kind: SealedKind): SealedValues | null {
  return SEALED[kind] ?? sealedValues(kind);
}

export interface SealedValue {
  readonly kind: SealedKind;
  readonly scope: Scope;
  readonly id: string;
  readonly sealed: string;
}

/** Nothing happens if the value is not sealed as it was read. */
export async function replaceSeal(
  database: D1Database,
  { kind, scope, id, sealed }: SealedValue,
  after: string,
): Promise<void> {
  const values = valuesOf(kind);
  if (values === null) return;
  const { table, column } = values;
  await inProject(database, scope).update(table, { [column.name]: after }, eq(table.id, id), eq(column, sealed));
}

/** What offers of the run to its trainer are signed by; null where nothing is pushed, or there is no such run. */
export async function sealedPushSecret(database: D1Database, scope: Scope, runId: string): Promise<string | null> {
  const sealed = { sealed: runs.sealed_push_secret };
  const [row] = await inProject(database, scope).columns(sealed, runs, eq(runs.id, runId));
  return row?.sealed ?? null;
}

interface Behind {
  /** Ids of the keys that the deployment holds. */
  readonly current: string;
  readonly before: readonly string[];
  /** The last value that was looked at, as `next` named it; null: from the first. */
  readonly after: string | null;
  readonly limit: number;
}

/**
 * For an operator, across everybody's rows: the next values that are not sealed under the current key, at most `limit` of
 * them, by kind and id; how many are under a key before it, and how many under none that is held, which nobody can open.
 */
export async function sealsBehind(
  database: D1Database,
  { current, before, after, limit }: Behind,
): Promise<{
  readonly values: readonly SealedValue[];
  readonly remaining: number;
  readonly lost: number;
  readonly next: string | null;
}> {
  const values: SealedValue[] = [];
  let [remaining, lost] = [0, 0];
  const [from, last = ""] = after?.split(":") ?? [];
  let isReached = from === undefined;
  for (const kind of SEALED_KINDS) {
    const of = valuesOf(kind);
    if (of === null) continue;
    const keyId = keyIdOf(of);
    const left = limit - values.length;
    if (isReached) values.push(...(await rowsOf(database, kind, of, ne(keyId, current), left)));
    else if (kind === from) {
      isReached = true;
      values.push(...(await rowsOf(database, kind, of, and(ne(keyId, current), gt(of.table.id, last)), left)));
    }
    remaining += await countOf(database, of, inArray(keyId, [...before]));
    lost += await countOf(database, of, notInArray(keyId, [current, ...before]));
  }
  const end = values.length < limit ? undefined : values.at(-1);
  return { values, remaining, lost, next: end === undefined ? null : `${end.kind}:${end.id}` };
}

/** Null where nothing is sealed, as no key's id is. */
function keyIdOf({ column }: SealedValues): SQL<string> {
  return sql<string>`substr(${column}, 1, instr(${column}, '.') - 1)`;
}

async function rowsOf(
  database: D1Database,
  kind: SealedKind,
  { table, column }: SealedValues,
  condition: SQL | undefined,
  limit: number,
): Promise<SealedValue[]> {
  const { id, org_id: orgId, project_id: projectId } = table;
  const rows = await unscoped(database, "operator")
    .select({ id, orgId, projectId, sealed: column })
    .from(table)
    .where(condition)
    .orderBy(table.id)
    .limit(limit);
  return rows.flatMap(({ id, orgId, projectId, sealed }) =>
    sealed === null ? [] : [{ kind, scope: { orgId, projectId }, id, sealed }],
  );
}

async function countOf(database: D1Database, { table }: SealedValues, condition: SQL): Promise<number> {
  return await unscoped(database, "operator").$count(table, condition);
}
