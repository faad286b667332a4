/**
 * Values that are stored sealed, in any table. A seal begins with the id of its key, up to a dot.
 *
 * Invariant. A seal is replaced only if it is still the one that was read, so a value that was set meanwhile stays.
 */
import { and, eq, gt, inArray, ne, notInArray, type SQL, sql } from "drizzle-orm";
import { SEALED_KINDS, type SealedKind } from "../../contract/reseal.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Database } from "./database.ts";
import { endpoints, runs, secrets } from "./schema.ts";
import { inProject, unscoped } from "./scoped.ts";
import { type SealedValues, sealedValues } from "./slice-tables.ts";

const SEALED: Readonly<Partial<Record<SealedKind, SealedValues>>> = {
  endpoint: { table: endpoints, column: endpoints.sealed_key },
  secret: { table: secrets, column: secrets.sealed_value },
  push_secret: { table: runs, column: runs.sealed_push_secret },
};

/** Null if this platform stores no such values. */
function valuesOf(kind: SealedKind): SealedValues | null {
  return SEALED[kind] ?? sealedValues(kind);
}

export interface SealedValue {
  readonly kind: SealedKind;
  readonly scope: Scope;
  readonly id: string;
  readonly sealed: string;
}

/** Does nothing if the value is no longer sealed as it was read. */
export async function replaceSeal(
  database: Database,
  { kind, scope, id, sealed }: SealedValue,
  after: string,
): Promise<void> {
  const values = valuesOf(kind);
  if (values === null) return;
  const { table, column } = values;
  await inProject(database, scope).update(table, { [column.name]: after }, eq(table.id, id), eq(column, sealed));
}

/**
 * The sealed secret that signs the run's offers to its trainer; null if nothing is pushed, or if there is no such run.
 */
export async function sealedPushSecret(database: Database, scope: Scope, runId: string): Promise<string | null> {
  const sealed = { sealed: runs.sealed_push_secret };
  const [row] = await inProject(database, scope).columns(sealed, runs, eq(runs.id, runId));
  return row?.sealed ?? null;
}

interface Behind {
  /** Ids of the keys that the deployment has. */
  readonly current: string;
  readonly before: readonly string[];
  /** The last value of the previous call, as `next` named it; null: from the first. */
  readonly after: string | null;
  readonly limit: number;
}

/**
 * For an operator, over the rows of all owners: the next values that are not sealed under the current key, at most
 * `limit`, by D1 database, kind and id. Also counts those under an earlier key (`remaining`), and those under an unknown key
 * (`lost`), which cannot be opened.
 */
export async function sealsBehind(
  database: Database,
  { current, before, after, limit }: Behind,
): Promise<{
  readonly values: readonly SealedValue[];
  readonly remaining: number;
  readonly lost: number;
  readonly next: string | null;
}> {
  const values: SealedValue[] = [];
  let [remaining, lost] = [0, 0];
  const [from, last = "", number = "0"] = after?.split(":") ?? [];
  let isReached = from === undefined;
  let next: string | null = null;
  for (const { at, d1, kind, of } of sourcesIn(database)) {
    const keyId = keyIdOf(of);
    const isFirst = !isReached && kind === from && String(at) === number;
    isReached ||= isFirst;
    const beyond = isFirst ? gt(of.table.id, last) : undefined;
    const left = limit - values.length;
    const found = isReached ? await rowsOf(d1, kind, of, and(ne(keyId, current), beyond), left) : [];
    values.push(...found);
    if (found.length === left) next ??= placeOf(found.at(-1), at);
    remaining += await countOf(d1, of, inArray(keyId, [...before]));
    lost += await countOf(d1, of, notInArray(keyId, [current, ...before]));
  }
  return { values, remaining, lost, next };
}

/** Where sealed values are, in the order in which they are processed. */
function sourcesIn(database: Database) {
  return [...database.all.entries()].flatMap(([at, d1]) =>
    SEALED_KINDS.flatMap((kind) => {
      const of = valuesOf(kind);
      return of === null ? [] : [{ at, d1, kind, of }];
    }),
  );
}

/** The place after a value of a D1 database. */
function placeOf(value: SealedValue | undefined, database: number): string | null {
  if (value === undefined) return null;
  return `${value.kind}:${value.id}${database === 0 ? "" : `:${database}`}`;
}

/** Null if the column is null: nothing is sealed there. */
function keyIdOf({ column }: SealedValues): SQL<string> {
  return sql<string>`substr(${column}, 1, instr(${column}, '.') - 1)`;
}

async function rowsOf(
  d1: D1Database,
  kind: SealedKind,
  { table, column }: SealedValues,
  condition: SQL | undefined,
  limit: number,
): Promise<SealedValue[]> {
  const { id, org_id: orgId, project_id: projectId } = table;
  const rows = await unscoped(d1, "operator")
    .select({ id, orgId, projectId, sealed: column })
    .from(table)
    .where(condition)
    .orderBy(table.id)
    .limit(limit);
  return rows.flatMap(({ id, orgId, projectId, sealed }) =>
    sealed === null ? [] : [{ kind, scope: { orgId, projectId }, id, sealed }],
  );
}

async function countOf(d1: D1Database, { table }: SealedValues, condition: SQL): Promise<number> {
  return await unscoped(d1, "operator").$count(table, condition);
}
