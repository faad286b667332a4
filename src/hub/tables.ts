/**
 * Tables of published environments. A row belongs to the organisation that published it, and to one project only if it is
 * private. A public row stays if its organisation is deleted, because runs of others have pinned it. Names are unique in
 * the deployment, so all but the grants are of the deployment.
 */
import { index, integer, primaryKey, sqliteTable, text, unique } from "drizzle-orm/sqlite-core";
import type { EnvironmentKind, PublishedVersion, Visibility } from "../contract/published-environment.ts";
import type { EnvironmentView } from "../contract/run.ts";
import { ofDeployment } from "../kernel/db/schema.ts";

/** The name under which an organisation publishes: it takes one, once. */
export const hubOwners = ofDeployment(
  sqliteTable("hub_owners", {
    org_id: text().primaryKey(),
    name: text().notNull(),
    /** The name as names are compared. */
    key: text().notNull().unique("hub_owners_key"),
    created_at: integer().notNull(),
  }),
);

export const hubEnvironments = ofDeployment(
  sqliteTable(
    "hub_environments",
    {
      id: text().primaryKey(),
      org_id: text().notNull(),
      /** Null unless it is private. */
      project_id: text(),
      /** `owner/name`. */
      name: text().notNull(),
      key: text().notNull().unique("hub_environments_key"),
      visibility: text().$type<Visibility>().notNull(),
      kind: text().$type<EnvironmentKind>().notNull().default("javascript"),
      /** Of the newest version. */
      description: text(),
      created_by: text().notNull(),
      created_at: integer().notNull(),
      updated_at: integer().notNull(),
    },
    (table) => [
      index("hub_environments_by_org").on(table.org_id, table.key),
      index("hub_environments_by_visibility").on(table.visibility, table.key),
    ],
  ),
);
export type HubEnvironmentRow = typeof hubEnvironments.$inferSelect;

/** What is known of a version's code without loading it. */
export type About = Pick<EnvironmentView, "args" | "dataset" | "row" | "needs" | "judges" | "max_reward"> &
  Pick<PublishedVersion, "license" | "package" | "protocol" | "provenance">;

export interface NpmListing {
  /** What an installation depends on, from package.json: at most `LIMITS.publishedNpmCharacters` as JSON. */
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly integrity: string;
  /** SHA-1 of the package in hex, for old clients. */
  readonly shasum: string;
}

export interface WheelListing {
  readonly file: string;
  readonly bytes: number;
  /** SHA-256 in hex, of its METADATA. */
  readonly metadata: string;
  readonly requires_python: string | null;
}

export const hubVersions = ofDeployment(
  sqliteTable(
    "hub_versions",
    {
      id: text().primaryKey(),
      org_id: text().notNull(),
      /** Null unless the environment is private. */
      project_id: text(),
      environment_id: text().notNull(),
      version: text().notNull(),
      /** `sha256:` and hex, of the code that is played. */
      digest: text().notNull(),
      description: text(),
      /** Bytes of its files in R2; 0 once it is taken down. */
      stored_bytes: integer().notNull().default(0),
      /** The project that published it, which pays for the stored bytes. */
      paid_by: text().notNull().default(""),
      about: text({ mode: "json" }).$type<About>().notNull(),
      validation: text({ mode: "json" }).$type<PublishedVersion["validation"]>().notNull(),
      /** What npm clients read; null if it is not an npm package. */
      npm: text({ mode: "json" }).$type<NpmListing>(),
      /** What Python's clients read; null if it is not a wheel. */
      wheel: text({ mode: "json" }).$type<WheelListing>(),
      created_by: text().notNull(),
      created_at: integer().notNull(),
      yanked_at: integer(),
      yank_reason: text(),
      deprecated: text(),
      taken_down_at: integer(),
      take_down_reason: text(),
    },
    (table) => [
      unique("hub_versions_version").on(table.environment_id, table.version),
      index("hub_versions_stored").on(table.org_id, table.paid_by, table.stored_bytes),
    ],
  ),
);
export type HubVersionRow = typeof hubVersions.$inferSelect;

export const hubTags = ofDeployment(
  sqliteTable(
    "hub_tags",
    {
      org_id: text().notNull(),
      project_id: text(),
      environment_id: text().notNull(),
      tag: text().notNull(),
      version: text().notNull(),
      updated_at: integer().notNull(),
    },
    (table) => [primaryKey({ columns: [table.environment_id, table.tag] })],
  ),
);
export type HubTagRow = typeof hubTags.$inferSelect;

/** What a project lets an environment of another organisation use. */
export const hubGrants = sqliteTable(
  "hub_grants",
  {
    org_id: text().notNull(),
    project_id: text().notNull(),
    environment_id: text().notNull(),
    needs: text({ mode: "json" }).$type<readonly string[]>().notNull(),
    granted_by: text().notNull(),
    granted_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.project_id, table.environment_id] })],
);
export type HubGrantRow = typeof hubGrants.$inferSelect;
