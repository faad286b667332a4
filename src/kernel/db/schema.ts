/**
 * The tables of D1 that the kernel uses. Those of slices, by the same rules, are in their `tables.ts`.
 *
 * Invariants. Every table of a project carries `org_id` and `project_id`, and every query of it filters by both; tables
 * of an organisation carry `org_id`. Of organisations, projects, people, keys, endpoints and accepted runs D1 is the
 * authority; a run's counts and report are a copy that its object writes behind itself and may lag. Rollouts have no row
 * here: their run's object holds them. Of what is charged the organisation's object is the authority, and what stands here
 * is a copy. Every `*_at` is integer milliseconds since the epoch; the wire has seconds.
 * Columns that hold JSON are typed here, since only this platform writes them.
 */
import { index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { DeletionKind } from "../../contract/deletion.ts";
import type { EndpointCapabilities, EndpointView } from "../../contract/endpoint.ts";
import type { OrganizationLimits, Retention } from "../../contract/identity.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { BillingMode } from "../../contract/money.ts";
import type { RunReport } from "../../contract/report.ts";
import type { RunCounts, RunKind, RunStatus } from "../../contract/run.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import type { VerdictValue } from "../../core/rubrics/verdict.ts";

/** What every table of a project has. */
export const projectColumns = {
  org_id: text().notNull(),
  project_id: text().notNull(),
};

/** A customer of the deployment: everything but the deployment's own belongs to one. */
export const organizations = sqliteTable("organizations", {
  id: text().primaryKey(),
  name: text().notNull(),
  /** What differs from `DEFAULT_LIMITS`. */
  limits: text({ mode: "json" }).$type<Partial<OrganizationLimits>>().notNull(),
  /** Hosts that endpoints and environments of it may call; null: any that is allowed at all. */
  allowed_hosts: text({ mode: "json" }).$type<readonly string[]>(),
  created_at: integer().notNull(),
  /** Set when its deletion begins: from then on nobody gets in. */
  deleted_at: integer(),
  billing: text().$type<BillingMode>().notNull().default("off"),
  /** How far its balance may fall below 0, in micro-dollars; only where it is postpaid. Null: any. */
  credit_limit_micros: integer(),
});
export type OrganizationRow = typeof organizations.$inferSelect;

export const projects = sqliteTable(
  "projects",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    /** Unique in its organisation; null once its deletion begins. */
    name: text(),
    /** What differs from `DEFAULT_RETENTION`. */
    retention: text({ mode: "json" }).$type<Partial<Retention>>().notNull(),
    created_at: integer().notNull(),
    deleted_at: integer(),
  },
  (table) => [
    unique("projects_name").on(table.org_id, table.name),
    index("projects_by_time").on(table.org_id, table.created_at, table.id),
  ],
);
export type ProjectRow = typeof projects.$inferSelect;

/** What is being deleted or was, with what has gone so far. */
export const deletions = sqliteTable(
  "deletions",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    /** Null: of the whole organisation. */
    project_id: text(),
    kind: text().$type<DeletionKind>().notNull(),
    target_id: text().notNull(),
    state: text().$type<"queued" | "running" | "done">().notNull(),
    /** How many of each kind of thing are gone: objects, stored files, bytes, rows. */
    counts: text({ mode: "json" }).$type<Readonly<Record<string, number>>>().notNull(),
    /** `key_…`, `per_…`, or `retention`. */
    requested_by: text().notNull(),
    created_at: integer().notNull(),
    finished_at: integer(),
  },
  (table) => [
    unique("deletions_target").on(table.org_id, table.kind, table.target_id),
    index("deletions_by_time").on(table.org_id, table.created_at, table.id),
  ],
);
export type DeletionRow = typeof deletions.$inferSelect;

/** What the trainer of one training run authenticates with. */
export const trainerTokens = sqliteTable(
  "trainer_tokens",
  {
    /** SHA-256 of the whole token, in hex. The token itself is kept nowhere. */
    hash: text().primaryKey(),
    ...projectColumns,
    run_id: text().notNull(),
    created_at: integer().notNull(),
    /** Set once another has taken its place; null while it is the latest. */
    expires_at: integer(),
  },
  (table) => [index("trainer_tokens_by_run").on(table.org_id, table.project_id, table.run_id)],
);
export type TrainerTokenRow = typeof trainerTokens.$inferSelect;

export const endpoints = sqliteTable(
  "endpoints",
  {
    id: text().primaryKey(),
    ...projectColumns,
    base_url: text().notNull(),
    /** AES-GCM, sealed before it got here; null for an endpoint without a key. */
    sealed_key: text(),
    api_key_last4: text(),
    created_at: integer().notNull(),
    /** Null for an endpoint that was given with a run and belongs to it alone, and for a deleted one. */
    name: text(),
    max_concurrent: integer(),
    rpm: integer(),
    prices: text({ mode: "json" }).$type<NonNullable<EndpointView["prices"]>>(),
    capabilities: text({ mode: "json" }).$type<EndpointCapabilities>(),
    /** What of a request it refuses, by name: as it was set, and as calls found out. */
    refuses: text({ mode: "json" }).$type<readonly string[]>(),
    updated_at: integer(),
    /** A deleted endpoint stays for the runs that name it, without its key. */
    deleted_at: integer(),
  },
  (table) => [unique("endpoints_name").on(table.org_id, table.project_id, table.name)],
);
export type EndpointRow = typeof endpoints.$inferSelect;

/** Values environments ask for as `secret:NAME`, sealed. */
export const secrets = sqliteTable(
  "secrets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text().notNull(),
    /** AES-GCM, sealed before it got here. */
    sealed_value: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [unique("secrets_name").on(table.org_id, table.project_id, table.name)],
);
export type SecretRow = typeof secrets.$inferSelect;

/** Uploaded rows: a row stands here only once file and index are whole in the object store. */
export const datasets = sqliteTable(
  "datasets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text(),
    rows: integer().notNull(),
    bytes: integer().notNull(),
    sha256: text().notNull(),
    /** The environment whose schema the rows were checked against, if one was named, and its arguments. */
    environment: text({ mode: "json" }).$type<
      NonNullable<DatasetView["environment"]> & { readonly args: JsonObject }
    >(),
    created_at: integer().notNull(),
  },
  (table) => [
    unique("datasets_name").on(table.org_id, table.project_id, table.name),
    index("datasets_stored").on(table.org_id, table.bytes),
    index("datasets_by_time").on(table.org_id, table.project_id, table.created_at, table.id),
  ],
);
export type DatasetTableRow = typeof datasets.$inferSelect;

/** What an Idempotency-Key made, for resources that do not keep the key themselves (runs do). */
export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    ...projectColumns,
    /** The operation's id, such as `createEndpoint`. */
    operation: text().notNull(),
    key: text().notNull(),
    /** Keyed hash of the request: it may hold a secret, which a plain hash would let one guess at. */
    request_hash: text().notNull(),
    resource_id: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org_id, table.project_id, table.operation, table.key] }),
    index("idempotency_keys_by_time").on(table.org_id, table.project_id, table.created_at),
  ],
);

export const runs = sqliteTable(
  "runs",
  {
    id: text().primaryKey(),
    ...projectColumns,
    kind: text().$type<RunKind>().notNull(),
    name: text(),
    status: text().$type<RunStatus>().notNull(),
    environment_id: text().notNull(),
    environment_version: text().notNull(),
    endpoint_id: text().notNull(),
    /** All that it was asked to do: its object is created from this. What queries go by stands in columns as well. */
    spec: text({ mode: "json" }).$type<RunSpec>().notNull(),
    idempotency_key: text(),
    request_hash: text(),
    /** What offers to its trainer are signed by, sealed as endpoints' keys are; null where nothing is pushed. */
    sealed_push_secret: text(),
    counts: text({ mode: "json" }).$type<RunCounts>(),
    report: text({ mode: "json" }).$type<RunReport>(),
    error: text({ mode: "json" }).$type<{ code: string; message: string }>(),
    metadata: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
    created_at: integer().notNull(),
    finished_at: integer(),
    /** What its trajectories and segments take in the object store, as its object last counted. */
    stored_bytes: integer().notNull().default(0),
    /** Set when its deletion begins: from then on it is nobody's. */
    deleted_at: integer(),
    /** The uploaded dataset the run names, if it names one. */
    dataset_id: text(),
    /** Messages of the run that a queue gave up on. */
    dead_letters: integer().notNull().default(0),
  },
  (table) => [
    index("runs_by_dataset").on(table.org_id, table.project_id, table.dataset_id),
    index("runs_by_endpoint").on(table.org_id, table.project_id, table.endpoint_id),
    unique("runs_idempotency_key").on(table.org_id, table.project_id, table.idempotency_key),
    index("runs_by_time").on(table.org_id, table.project_id, table.created_at, table.id),
    index("runs_of_organization").on(table.org_id, table.status),
    index("runs_stored").on(table.org_id, table.stored_bytes),
    index("runs_by_end").on(table.finished_at),
    index("runs_by_status").on(table.org_id, table.project_id, table.status, table.created_at, table.id),
  ],
);
export type RunRow = typeof runs.$inferSelect;

/** What judges said, by a hash of everything that decided it: once in a project, which paid for it. */
export const judgeVerdicts = sqliteTable(
  "judge_verdicts",
  {
    ...projectColumns,
    key: text().notNull(),
    verdict: text({ mode: "json" }).$type<{ readonly value: VerdictValue; readonly reason: string | null }>().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org_id, table.project_id, table.key] }),
    index("judge_verdicts_by_time").on(table.org_id, table.project_id, table.created_at),
  ],
);
export type JudgeVerdictRow = typeof judgeVerdicts.$inferSelect;

/**
 * The results of ended runs, of all organisations: triggers on `runs` add to it in the transaction of the end, so that who
 * watches reads a few rows and not every run. Unlike a run it is never deleted.
 */
export const totals = sqliteTable(
  "totals",
  {
    /** `runs` (how often one ended, by status), `dead_letters`, `spans_dropped`, `events_unposted`, or an outcome of rollouts. */
    kind: text().notNull(),
    /** The status, the cause, the class or the reason; empty where there is none. */
    name: text().notNull(),
    n: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.name] })],
);
