/**
 * Values that are kept sealed, wherever they stand. A seal begins with the id of the key it was made under, up to a dot.
 *
 * Invariant. A seal is replaced only while it is still the one that was read: what was set meanwhile stays.
 */
import { and, eq, inArray, isNotNull, notInArray, type SQL, sql } from "drizzle-orm";
import type { Scope } from "../contract/scope.ts";
import { replicas, triggers, webhookSecrets } from "./doors-schema.ts";
import { endpoints, runs, secrets } from "./schema.ts";
import { inProject, unscoped } from "./scoped.ts";

const SEALED = {
  endpoint: { table: endpoints, column: endpoints.sealed_key },
  replica: { table: replicas, column: replicas.sealed_key },
  replica_control: { table: replicas, column: replicas.sealed_control_key },
  secret: { table: secrets, column: secrets.sealed_value },
  push_secret: { table: runs, column: runs.sealed_push_secret },
  webhook_secret: { table: webhookSecrets, column: webhookSecrets.sealed_secret },
  trigger: { table: triggers, column: triggers.sealed_secret },
} as const;
export type SealedKind = keyof typeof SEALED;
const KINDS = [
  "endpoint",
  "replica",
  "replica_control",
  "secret",
  "push_secret",
  "webhook_secret",
  "trigger",
] as const satisfies readonly SealedKind[];

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
  const rows = inProject(database, scope);
  const { table, column } = SEALED[kind];
  const unchanged = [eq(table.id, id), eq(column, sealed)];
  const replace = {
    endpoint: () => rows.update(endpoints, { sealed_key: after }, ...unchanged),
    replica: () => rows.update(replicas, { sealed_key: after }, ...unchanged),
    replica_control: () => rows.update(replicas, { sealed_control_key: after }, ...unchanged),
    secret: () => rows.update(secrets, { sealed_value: after }, ...unchanged),
    push_secret: () => rows.update(runs, { sealed_push_secret: after }, ...unchanged),
    webhook_secret: () => rows.update(webhookSecrets, { sealed_secret: after }, ...unchanged),
    trigger: () => rows.update(triggers, { sealed_secret: after }, ...unchanged),
  };
  await replace[kind]();
}

/** What offers of the run to its trainer are signed by; null where nothing is pushed, or there is no such run. */
export async function sealedPushSecret(database: D1Database, scope: Scope, runId: string): Promise<string | null> {
  const sealed = { sealed: runs.sealed_push_secret };
  const [row] = await inProject(database, scope).columns(sealed, runs, eq(runs.id, runId));
  return row?.sealed ?? null;
}

/**
 * For an operator, across everybody's rows: values sealed under one of `keyIds`, at most `limit` of them, and how many
 * there are; and how many are sealed under none of the keys `held`, which nobody can open.
 */
export async function sealsUnder(
  database: D1Database,
  {
    keyIds,
    held,
    limit,
  }: { readonly keyIds: readonly string[]; readonly held: readonly string[]; readonly limit: number },
): Promise<{ readonly values: readonly SealedValue[]; readonly count: number; readonly lost: number }> {
  const values: SealedValue[] = [];
  let [count, lost] = [0, 0];
  for (const kind of KINDS) {
    const { column } = SEALED[kind];
    const under = inArray(keyIdOf(column), [...keyIds]);
    values.push(...(await rowsUnder(database, kind, under, limit - values.length)));
    count += await countOf(database, kind, under);
    lost += await countOf(database, kind, and(isNotNull(column), notInArray(keyIdOf(column), [...held])));
  }
  return { values, count, lost };
}

function keyIdOf(column: (typeof SEALED)[SealedKind]["column"]): SQL<string> {
  return sql<string>`substr(${column}, 1, instr(${column}, '.') - 1)`;
}

async function rowsUnder(
  database: D1Database,
  kind: SealedKind,
  under: SQL | undefined,
  limit: number,
): Promise<SealedValue[]> {
  const { table, column } = SEALED[kind];
  const rows = await unscoped(database, "operator")
    .select({ id: table.id, orgId: table.org_id, projectId: table.project_id, sealed: column })
    .from(table)
    .where(under)
    // One that does not open must not hold up those behind it.
    .orderBy(sql`random()`)
    .limit(limit);
  return rows.flatMap(({ id, orgId, projectId, sealed }) =>
    sealed === null ? [] : [{ kind, scope: { orgId, projectId }, id, sealed }],
  );
}

async function countOf(database: D1Database, kind: SealedKind, condition: SQL | undefined): Promise<number> {
  const { table } = SEALED[kind];
  return await unscoped(database, "operator").$count(table, condition);
}
