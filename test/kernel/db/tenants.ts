/** Tenants with the same things under the same names, and a database that records its statements. */
import { env } from "cloudflare:workers";
import { and, eq, inArray } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import { apiKeys, invitations, members, people, signInCodes, webSessions } from "../../../src/accounts/tables.ts";
import { budgets, usageHours } from "../../../src/billing/tables.ts";
import type { Scope } from "../../../src/contract/scope.ts";
import { fleets, replicas } from "../../../src/fleets/tables.ts";
import { Database, databaseOf } from "../../../src/kernel/db/database.ts";
import {
  cachedJudgements,
  datasets,
  datasetUploads,
  deletions,
  endpoints,
  idempotencyKeys,
  organizations,
  projects,
  runs,
  secrets,
  trainerTokens,
} from "../../../src/kernel/db/schema.ts";
import { reviews } from "../../../src/reviews/tables.ts";
import { reportLinks } from "../../../src/sharing/tables.ts";
import type { NewTrigger } from "../../../src/triggers/queries.ts";
import { triggers } from "../../../src/triggers/tables.ts";
import { webhookEndpoints, webhookSecrets } from "../../../src/webhooks/tables.ts";
import { keyRow } from "../../accounts/admit.ts";
import { fleetRow, replicaRow } from "../../fleets/rows.ts";
import { endpointRow, runRow } from "../http/run-rows.ts";

export interface Tenant {
  readonly scope: Scope;
  /** Distinguishes its things from another tenant's: every id and hash ends in it, except its organisation's. */
  readonly mark: string;
}

export const TENANT_TABLES = {
  ...{
    apiKeys,
    datasets,
    datasetUploads,
    deletions,
    endpoints,
    idempotencyKeys,
    invitations,
    cachedJudgements,
    members,
  },
  ...{ fleets, replicas },
  ...{ organizations, projects, runs, secrets, trainerTokens, webhookEndpoints, webhookSecrets, triggers },
  ...{ budgets, usageHours },
  ...{ webSessions, signInCodes, reportLinks, reviews },
};

/** The fields that any trigger has. */
export const TRIGGER: Omit<NewTrigger, "id" | "name" | "sealed_secret"> = {
  ...{ scheme: "github", run: {}, map: {}, when: {}, concurrency: "allow", schedule: null, created_by: "key_1" },
  ...{ created_at: 1000, updated_at: 1000, disabled_at: null },
};

/** The number of the D1 database with the rows of all tenants. A query that asks the first one finds nothing. */
export const OF_TENANTS = 1;

/** Two projects of one organisation, and one of another. */
export async function threeTenants(): Promise<[Tenant, Tenant, Tenant]> {
  const newId = () => `org_${OF_TENANTS}_${crypto.randomUUID()}`;
  const [here, elsewhere] = [newId(), newId()];
  const [one, beside, far] = [newTenant(here), newTenant(here), newTenant(elsewhere)];
  // The organisation of the two is named by the first.
  for (const tenant of [one, beside, far]) await settle(tenant);
  return [one, beside, far];
}

function newTenant(orgId: string): Tenant {
  const mark = crypto.randomUUID();
  return { mark, scope: { orgId, projectId: `pj_${mark}` } };
}

async function settle({ scope, mark }: Tenant): Promise<void> {
  const d1 = drizzle(databaseOf(env).at(OF_TENANTS));
  const owner = { org_id: scope.orgId, project_id: scope.projectId };
  const at = { created_at: 1000 };
  const endpoint = endpointRow({ id: `ep_${mark}` });
  const run = runRow(endpoint, {
    id: `run_${mark}`,
    idempotency_key: "k",
    name: "name",
    dataset_id: `ds_${mark}`,
    sealed_push_secret: mark,
  });
  const organization = { id: scope.orgId, name: mark, limits: {}, allowed_hosts: [mark], ...at };
  const key = { ...keyRow(scope, mark), id: `key_${mark}`, hash: `key-${mark}`, person_id: `per_${mark}` };
  const invitation = { id: `inv_${mark}`, email: "e@example.com", role: "viewer" as const, hash: `invitation-${mark}` };
  const about = { kind: "run" as const, target_id: `ds-gone_${mark}`, state: "queued" as const, counts: {} };
  // Different from another tenant's.
  const days = 1 + Math.floor(Math.random() * 30_000);
  const gone = { id: `del-done_${mark}`, ...about, target_id: `run-gone_${mark}`, state: "done" as const };
  const ended = runRow(endpoint, {
    ...{ id: `run-ended_${mark}`, idempotency_key: `${run.id}/eval/1`, metadata: { training_run: run.id } },
    ...{ status: "completed", finished_at: 1500 },
  });
  const asked = { operation: "createSecret", key: "k", request_hash: "h", resource_id: `sec_${mark}` };
  const judgement = { value: 1, reason: mark };
  await d1.batch([
    d1.insert(organizations).values(organization).onConflictDoNothing(),
    d1
      .insert(projects)
      .values({ id: scope.projectId, org_id: scope.orgId, name: mark, retention: { runs_days: days }, ...at }),
    d1.insert(people).values({ id: `per_${mark}`, email: `${mark}@example.com`, ...at }),
    d1.insert(members).values({ org_id: scope.orgId, person_id: `per_${mark}`, role: "developer", ...at }),
    d1.insert(invitations).values({ ...invitation, org_id: scope.orgId, invited_by: "key_1", ...at, expires_at: 9000 }),
    d1.insert(apiKeys).values(key),
    d1.insert(deletions).values({ id: `del_${mark}`, ...owner, ...about, requested_by: "key_1", ...at }),
    d1.insert(trainerTokens).values({ hash: `token-${mark}`, ...owner, run_id: run.id, ...at }),
    d1.insert(endpoints).values({ ...endpoint, ...owner, name: "name" }),
    d1.insert(endpoints).values({ ...endpoint, ...owner, id: `ep-unused_${mark}`, name: "unused" }),
    d1
      .insert(secrets)
      .values({ id: `sec_${mark}`, ...owner, name: "name", sealed_value: mark, ...at, updated_at: 1000 }),
    d1.insert(triggers).values({ id: `tr_${mark}`, ...owner, name: "name", ...TRIGGER, sealed_secret: mark }),
    d1.insert(datasets).values({ id: `ds_${mark}`, ...owner, name: "name", rows: 1, bytes: 2, sha256: mark, ...at }),
    d1.insert(datasets).values({ id: `ds-unused_${mark}`, ...owner, rows: 1, bytes: 2, sha256: mark, ...at }),
    d1.insert(datasetUploads).values({ id: `up_${mark}`, ...owner, environment_args: {}, sha256: mark, ...at }),
    d1.insert(idempotencyKeys).values({ ...owner, ...asked, ...at }),
    d1.insert(runs).values({ ...run, ...owner }),
    d1.insert(runs).values({ ...ended, ...owner }),
    d1.insert(deletions).values({ ...gone, ...owner, requested_by: "key_1", ...at, finished_at: 1500 }),
    d1.insert(cachedJudgements).values({ ...owner, key: "k", verdict: judgement, ...at }),
    d1.insert(fleets).values({ ...fleetRow({ id: `fl_${mark}`, name: "name" }), ...owner }),
    d1.insert(replicas).values({
      ...replicaRow(`fl_${mark}`, { id: `rp_${mark}`, sealed_key: mark, sealed_control_key: mark }),
      ...owner,
    }),
    d1.insert(runs).values({
      ...runRow({ ...endpoint, id: `fl_${mark}` }, { id: `run-on-fleet_${mark}`, kind: "training" }),
      ...owner,
    }),
    d1.insert(webhookEndpoints).values({ ...webhookRow(`whe_${mark}`), ...owner, description: mark }),
    d1
      .insert(webhookSecrets)
      .values({ ...webhookSecretRow(`whs_${mark}`, `whe_${mark}`), ...owner, sealed_secret: mark }),
    ...pageOf({ scope, mark }),
    ...moneyOf({ scope, mark }),
  ]);
}

const SHORT = { created_at: 1000, expires_at: 8000 };

export function sessionRow(mark: string, id: string) {
  const of = { project_id: `pj_${mark}`, key_id: `key_${mark}`, person_id: null };
  return { id: `ses_${id}`, ...of, hash: `session-${id}`, ...SHORT };
}

export function codeRow(mark: string, hash: string) {
  const of = { project_id: `pj_${mark}`, key_id: `key_${mark}`, person_id: null };
  return { hash, ...of, ...SHORT, session_until: null };
}

export function linkRow(id: string, run_id: string) {
  return { id: `rl_${id}`, run_id, hash: `link-${id}`, created_by: "key_1", ...SHORT };
}

/** What a review says. */
export const REVIEWED = { mark: "good" as const, note: null, values: [], why: null };

export function reviewRow(id: string, run_id: string) {
  const of = { rollout_id: `ro_${id}`, created_by: "key_1" };
  return { id: `rev_${id}`, run_id, ...of, ...REVIEWED, created_at: 1000, updated_at: 1000 };
}

export function webhookRow(id: string) {
  const none = { disabled_at: null, disabled_reason: null };
  const events = ["budget.*"];
  return { id, url: "https://hooks.example/in", description: "", events, ...none, created_at: 1000, updated_at: 1000 };
}

export function webhookSecretRow(id: string, webhook_id: string) {
  return { id, webhook_id, sealed_secret: "sealed", expires_at: null, created_at: 1000 };
}

/** A signed-in browser, a sign-in code, a link to the report of its run, and a review. */
function pageOf({ scope, mark }: Tenant) {
  const d1 = drizzle(databaseOf(env).at(OF_TENANTS));
  const owner = { org_id: scope.orgId, project_id: scope.projectId };
  return [
    d1.insert(webSessions).values({ ...sessionRow(mark, mark), ...owner }),
    d1.insert(signInCodes).values({ ...codeRow(mark, `code-${mark}`), ...owner }),
    d1.insert(reportLinks).values({ ...linkRow(mark, `run_${mark}`), ...owner }),
    d1.insert(reviews).values({ ...reviewRow(mark, `run_${mark}`), ...owner }),
  ] as const;
}

/** A budget and an hour of usage. */
function moneyOf({ scope, mark }: Tenant) {
  const d1 = drizzle(databaseOf(env).at(OF_TENANTS));
  const org = { org_id: scope.orgId };
  const budget = { ...org, target_kind: "project" as const, target_id: scope.projectId, limit_micros: 5 };
  const hour = { ...org, project_id: scope.projectId, hour: 0, payer: mark, environment: "e", model: "m" };
  return [
    d1.insert(usageHours).values({ ...hour, kind: "eval", counts: {}, lines: {} }),
    d1.insert(budgets).values({ ...budget, id: `bud_${mark}`, created_at: 1000, updated_at: 1000 }),
  ] as const;
}

/** The rows of the tenant, and those of its organisation without a project; in other tables, those with its mark. */
export async function ownedRows({ scope, mark }: Tenant): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const d1 = drizzle(databaseOf(env).at(OF_TENANTS));
  const { organizations: whole, ...others } = TENANT_TABLES;
  const ofOthers = Object.values(others).map((table) => {
    const ofOrganization = eq(table.org_id, scope.orgId);
    const own = "project_id" in table ? inArray(table.project_id, [scope.projectId, ""]) : undefined;
    return d1.select().from(table).where(and(ofOrganization, own));
  });
  // One call for all, because a separate call for each takes longer than the read.
  const itself = d1.select().from(whole).where(eq(whole.id, scope.orgId));
  const [organization, ...found] = await d1.batch([itself, ...ofOthers]);
  const rows = Object.entries(others).map(([name, table], index) => {
    const all: readonly unknown[] = found[index] ?? [];
    if ("project_id" in table) return [name, all] as const;
    return [name, all.filter((row) => JSON.stringify(row).includes(mark))] as const;
  });
  const marked = organization.filter((row) => JSON.stringify(row).includes(mark));
  return Object.fromEntries([["organizations", marked], ...rows]);
}

export interface NotedStatement {
  /** The number of the D1 database. */
  readonly database: number;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The tests' database; `statements` records all statements. */
export function notingDatabase(): { readonly database: Database; readonly statements: NotedStatement[] } {
  const statements: NotedStatement[] = [];
  const noting = (of: D1Database, number: number) =>
    new Proxy(of, {
      get: (real, name) => {
        if (name === "batch") return real.batch.bind(real);
        if (name !== "prepare") throw new Error(`nobody expected ${String(name)}`);
        return (text: string) => {
          const prepared = real.prepare(text);
          const bind = (...values: unknown[]) => {
            statements.push({ database: number, text, values });
            return prepared.bind(...values);
          };
          return { bind };
        };
      },
    });
  const [main = env.DB, ...others] = databaseOf(env).all.map(noting);
  return { database: new Database(main, others), statements };
}
