/**
 * The tables of D1 that the kernel uses. Tables of slices follow the same rules and are in their `tables.ts`.
 *
 * Invariants. Every table of a project has `org_id` and `project_id`, and every query of it filters by both; tables of
 * an organisation have `org_id`. D1 is the authority for organisations, projects, people, keys, endpoints and accepted
 * runs. A run's counts and report are a copy that its object writes, and may be behind. Rollouts have no row here:
 * their run's object holds them. The organisation's object is the authority for charges, and D1 has a copy. Every
 * `*_at` is integer milliseconds since the epoch; the API uses seconds. Columns with JSON are typed here, because only
 * this platform writes them.
 */
import { index, integer, primaryKey, type SQLiteTable, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { DeletionKind } from "../../contract/deletion.ts";
import type { EndpointCapabilities, EndpointView } from "../../contract/endpoint.ts";
import type { OrganizationLimits, Retention } from "../../contract/identity.ts";
import type { JsonObject } from "../../contract/json.ts";
import type { BillingMode } from "../../contract/money.ts";
import type { RunReport } from "../../contract/report.ts";
import type { RunCounts, RunKind, RunStatus } from "../../contract/run.ts";
import type { RunSpec } from "../../contract/run-spec.ts";
import type { DatasetView } from "../../contract/uploaded-dataset.ts";
import type { JudgementValue } from "../../core/rubrics/judgement.ts";

const ofAll = new WeakSet<SQLiteTable>();

/**
 * Marks a table that the whole deployment shares, for example one with names that are unique in the deployment. All of its
 * rows are in the main D1 database, also those of organisations in other databases.
 */
export function ofDeployment<T extends SQLiteTable>(table: T): T {
  ofAll.add(table);
  return table;
}

export function isOfDeployment(table: SQLiteTable): boolean {
  return ofAll.has(table);
}

/** The columns that every table of a project has. */
export const projectColumns = {
  org_id: text().notNull(),
  project_id: text().notNull(),
};

/** A customer of the deployment. Everything belongs to an organisation, except the deployment's own data. */
export const organizations = sqliteTable("organizations", {
  id: text().primaryKey(),
  name: text().notNull(),
  /** The differences from `DEFAULT_LIMITS`. */
  limits: text({ mode: "json" }).$type<Partial<OrganizationLimits>>().notNull(),
  /** Hosts that its endpoints and environments may call; null: no restriction by the organisation. */
  allowed_hosts: text({ mode: "json" }).$type<readonly string[]>(),
  created_at: integer().notNull(),
  /** Set when its deletion begins: from then on no request of it is accepted. */
  deleted_at: integer(),
  billing: text().$type<BillingMode>().notNull().default("off"),
  /** How far its balance may fall below 0, in micro-dollars; only if it is postpaid. Null: no limit. */
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
    /** The differences from `DEFAULT_RETENTION`. */
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

/** Deletions, running or done, with the counts of what was deleted so far. */
export const deletions = sqliteTable(
  "deletions",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    /** Null if the whole organisation is deleted. */
    project_id: text(),
    kind: text().$type<DeletionKind>().notNull(),
    target_id: text().notNull(),
    state: text().$type<"queued" | "running" | "done">().notNull(),
    /** How many of each kind were deleted: objects, stored files, bytes, rows. */
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

/** The tokens that the trainer of one training run authenticates with. */
export const trainerTokens = sqliteTable(
  "trainer_tokens",
  {
    /** SHA-256 of the whole token, in hex. The token itself is not stored. */
    hash: text().primaryKey(),
    ...projectColumns,
    run_id: text().notNull(),
    created_at: integer().notNull(),
    /** Set when another token replaced it; null for the latest. */
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
    /** AES-GCM, sealed before it is stored; null for an endpoint without a key. */
    sealed_key: text(),
    api_key_last4: text(),
    created_at: integer().notNull(),
    /** Null for an inline endpoint, which belongs to one run, and for a deleted one. */
    name: text(),
    max_concurrent: integer(),
    rpm: integer(),
    prices: text({ mode: "json" }).$type<NonNullable<EndpointView["prices"]>>(),
    capabilities: text({ mode: "json" }).$type<EndpointCapabilities>(),
    /** Names of what it refuses in a request: set by a client, or found by calls. */
    refuses: text({ mode: "json" }).$type<readonly string[]>(),
    /** Seconds without a byte after which a call is lost; null: the deployment's default. */
    silence_limit_s: integer(),
    updated_at: integer(),
    /** A deleted endpoint is kept without its key, for the runs that name it. */
    deleted_at: integer(),
  },
  (table) => [unique("endpoints_name").on(table.org_id, table.project_id, table.name)],
);
export type EndpointRow = typeof endpoints.$inferSelect;

/** Values that environments need as `secret:NAME`, sealed. */
export const secrets = sqliteTable(
  "secrets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text().notNull(),
    /** AES-GCM, sealed before it is stored. */
    sealed_value: text().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [unique("secrets_name").on(table.org_id, table.project_id, table.name)],
);
export type SecretRow = typeof secrets.$inferSelect;

/** Uploaded rows. A row is written here only after the file and index are complete in the object store. */
export const datasets = sqliteTable(
  "datasets",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text(),
    rows: integer().notNull(),
    bytes: integer().notNull(),
    sha256: text().notNull(),
    /** The environment whose schema the rows were checked against, with its arguments; null if none was named. */
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

/** Uploads of datasets in parts, also those that became datasets, until they expire. The parts are objects in R2. */
export const datasetUploads = sqliteTable(
  "dataset_uploads",
  {
    id: text().primaryKey(),
    ...projectColumns,
    name: text(),
    /** As it was given: `id` or `id@version`. */
    environment: text(),
    environment_args: text({ mode: "json" }).$type<JsonObject>().notNull(),
    bytes: integer(),
    sha256: text(),
    /** Null until it is completed. */
    dataset_id: text(),
    created_at: integer().notNull(),
  },
  (table) => [index("dataset_uploads_by_time").on(table.org_id, table.project_id, table.created_at, table.id)],
);
export type DatasetUploadRow = typeof datasetUploads.$inferSelect;

/** What an Idempotency-Key created, for resources that do not store the key themselves (runs do). */
export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    ...projectColumns,
    /** The operation's id, such as `createEndpoint`. */
    operation: text().notNull(),
    key: text().notNull(),
    /** Keyed hash of the request. The request may hold a secret, which could be guessed from a plain hash. */
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
    /**
     * The whole specification: the run's object is created from it. Fields that queries filter by are in columns too.
     */
    spec: text({ mode: "json" }).$type<RunSpec>().notNull(),
    idempotency_key: text(),
    request_hash: text(),
    /** The secret that signs offers to its trainer, sealed like endpoint keys; null if nothing is pushed. */
    sealed_push_secret: text(),
    counts: text({ mode: "json" }).$type<RunCounts>(),
    report: text({ mode: "json" }).$type<RunReport>(),
    error: text({ mode: "json" }).$type<{ code: string; message: string }>(),
    metadata: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
    created_at: integer().notNull(),
    finished_at: integer(),
    /** When the object last wrote this row, or was last woken; null: before 0.3. */
    written_at: integer(),
    /** Size of its trajectories and segments in the object store, as its object last counted. */
    stored_bytes: integer().notNull().default(0),
    /** Set when its deletion begins: from then on it is hidden. */
    deleted_at: integer(),
    /** The uploaded dataset that the run names, if any. */
    dataset_id: text(),
    /** Messages of the run that reached a dead-letter queue. */
    dead_letters: integer().notNull().default(0),
  },
  (table) => [
    index("runs_by_dataset").on(table.org_id, table.project_id, table.dataset_id),
    index("runs_by_endpoint").on(table.org_id, table.project_id, table.endpoint_id),
    unique("runs_idempotency_key").on(table.org_id, table.project_id, table.idempotency_key),
    index("runs_by_time").on(table.org_id, table.project_id, table.created_at, table.id),
    index("runs_of_organization").on(table.org_id, table.status),
    index("runs_stored").on(table.org_id, table.stored_bytes),
    index("runs_by_environment").on(
      ...([table.org_id, table.project_id, table.environment_id, table.created_at, table.id] as const),
    ),
    index("runs_by_end").on(table.finished_at),
    index("runs_by_status").on(table.org_id, table.project_id, table.status, table.created_at, table.id),
  ],
);
export type RunRow = typeof runs.$inferSelect;

/** Judgements, by a hash of everything that decided them: one for each question in a project, which paid for it. */
export const cachedJudgements = sqliteTable(
  "judge_verdicts",
  {
    ...projectColumns,
    key: text().notNull(),
    verdict: text({ mode: "json" })
      .$type<{ readonly value: JudgementValue; readonly reason: string | null; readonly reply?: string | undefined }>()
      .notNull(),
    created_at: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.org_id, table.project_id, table.key] }),
    index("judge_verdicts_by_time").on(table.org_id, table.project_id, table.created_at),
  ],
);
export type CachedJudgementRow = typeof cachedJudgements.$inferSelect;

/**
 * Totals over ended runs of all organisations. Triggers on `runs` update it in the transaction of the end, so that
 * monitoring reads a few rows instead of every run. Its rows are never deleted.
 */
export const totals = sqliteTable(
  "totals",
  {
    /**
     * `runs` (how many ended, by status), `dead_letters`, `spans_dropped`, `events_unposted`, or an outcome of
     * rollouts.
     */
    kind: text().notNull(),
    /** The status, the cause, the class or the reason; empty if there is none. */
    name: text().notNull(),
    n: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.name] })],
);
