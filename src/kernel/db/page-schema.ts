/** Tables of the web page: who is signed in to it, and what is shared by a link. Of each token the hash alone is kept. */
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Whose a session or a code is: of a key, or of a person; the other is null. */
const whose = {
  org_id: text().notNull(),
  /** Of the key; null: any project of the organisation. */
  project_id: text(),
  key_id: text(),
  person_id: text(),
};

/** A browser that is signed in. What it may do is what its key or person may at that moment. */
export const webSessions = sqliteTable(
  "web_sessions",
  {
    id: text().primaryKey(),
    ...whose,
    /** SHA-256 of what the cookie holds, in hex. */
    hash: text().notNull().unique(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
  },
  (table) => [index("web_sessions_by_time").on(table.org_id, table.created_at, table.id)],
);
export type WebSessionRow = typeof webSessions.$inferSelect;

/** A code that becomes a session, once. */
export const signInCodes = sqliteTable(
  "sign_in_codes",
  {
    /** SHA-256 of the code, in hex. */
    hash: text().primaryKey(),
    ...whose,
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    /** When its session ends at the latest; null: only by its own age. */
    session_until: integer(),
  },
  (table) => [index("sign_in_codes_by_time").on(table.org_id, table.created_at)],
);
export type SignInCodeRow = typeof signInCodes.$inferSelect;

/** A link by which anybody reads the report of a run. */
export const reportLinks = sqliteTable(
  "report_links",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    project_id: text().notNull(),
    run_id: text().notNull(),
    /** SHA-256 of the token in the link, in hex. */
    hash: text().notNull().unique(),
    /** `key_…` or `per_…`. */
    created_by: text().notNull(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
  },
  (table) => [index("report_links_by_run").on(table.org_id, table.project_id, table.run_id, table.created_at)],
);
export type ReportLinkRow = typeof reportLinks.$inferSelect;
