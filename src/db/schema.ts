/**
 * The tables of D1.
 *
 * Invariants. Every table carries `org_id` and `project_id`, and every query but the look-up of a key filters by both.
 * Of keys, endpoints and accepted runs D1 is the authority; a run's counts and report are a copy that its object writes
 * behind itself and may lag. Rollouts have no row here: their run's object holds them. Every `*_at` is integer milliseconds since the epoch; the wire has seconds.
 * Columns that hold JSON are typed here, since only this platform writes them.
 */
import { index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { EndpointCapabilities, EndpointView } from "../contract/endpoint.ts";
import type { JsonObject } from "../contract/json.ts";
import type { RunReport } from "../contract/report.ts";
import type { RunCounts, RunKind, RunStatus } from "../contract/run.ts";
import type { RunSpec } from "../contract/run-spec.ts";
import type { DatasetView } from "../contract/uploaded-dataset.ts";
import type { VerdictValue } from "../core/rubrics/verdict.ts";

const scope = {
  org_id: text().notNull(),
  project_id: text().notNull(),
};

export const apiKeys = sqliteTable("api_keys", {
  id: text().primaryKey(),
  ...scope,
  /** SHA-256 of the whole token, in hex. The token itself is kept nowhere. */
  hash: text().notNull().unique(),
  last4: text().notNull(),
  created_at: integer().notNull(),
});
export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** What the trainer of one training run authenticates with. */
export const trainerTokens = sqliteTable(
  "trainer_tokens",
  {
    /** SHA-256 of the whole token, in hex. The token itself is kept nowhere. */
    hash: text().primaryKey(),
    ...scope,
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
    ...scope,
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
    ...scope,
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
    ...scope,
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
    index("datasets_by_time").on(table.org_id, table.project_id, table.created_at, table.id),
  ],
);
export type DatasetTableRow = typeof datasets.$inferSelect;

/** What an Idempotency-Key made, for resources that do not keep the key themselves (runs do). */
export const idempotencyKeys = sqliteTable(
  "idempotency_keys",
  {
    ...scope,
    /** The operation's id, such as `createEndpoint`. */
    operation: text().notNull(),
    key: text().notNull(),
    /** Keyed hash of the request: it may hold a secret, which a plain hash would let one guess at. */
    request_hash: text().notNull(),
    resource_id: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.project_id, table.operation, table.key] })],
);

export const runs = sqliteTable(
  "runs",
  {
    id: text().primaryKey(),
    ...scope,
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
    counts: text({ mode: "json" }).$type<RunCounts>(),
    report: text({ mode: "json" }).$type<RunReport>(),
    error: text({ mode: "json" }).$type<{ code: string; message: string }>(),
    metadata: text({ mode: "json" }).$type<Record<string, string>>().notNull(),
    created_at: integer().notNull(),
    finished_at: integer(),
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
    index("runs_by_status").on(table.org_id, table.project_id, table.status, table.created_at, table.id),
  ],
);
export type RunRow = typeof runs.$inferSelect;

/**
 * What judges said, by a hash of everything that decided it: once in an organisation. Its project is who paid for it.
 */
export const judgeVerdicts = sqliteTable(
  "judge_verdicts",
  {
    ...scope,
    key: text().notNull(),
    verdict: text({ mode: "json" }).$type<{ readonly value: VerdictValue; readonly reason: string | null }>().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.key] })],
);
export type JudgeVerdictRow = typeof judgeVerdicts.$inferSelect;
