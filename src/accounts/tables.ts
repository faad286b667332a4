/** Tables of people, keys, invitations and sign-ins. Of each token the hash alone is kept. */
import { isNotNull } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Permission, Role } from "../contract/identity.ts";

/**
 * A person, of no organisation or of several. One who is in no organisation any more has no row. Several people may have
 * been invited by one address; at most one of them has proved that it is theirs.
 */
export const people = sqliteTable(
  "people",
  {
    id: text().primaryKey(),
    /** What their first invitation was addressed to, in lower case. */
    email: text().notNull(),
    created_at: integer().notNull(),
    /** When Cloudflare Access said that the address is theirs; null: nobody said so. */
    proven_at: integer(),
  },
  (table) => [uniqueIndex("people_proven_email").on(table.email).where(isNotNull(table.proven_at))],
);
export type PersonRow = typeof people.$inferSelect;

export const members = sqliteTable(
  "members",
  {
    org_id: text().notNull(),
    person_id: text().notNull(),
    role: text().$type<Role>().notNull(),
    /** What the person is called in this organisation; no other sees it. */
    name: text(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_id, table.person_id] }), index("members_by_person").on(table.person_id)],
);
export type MemberRow = typeof members.$inferSelect;

export const invitations = sqliteTable(
  "invitations",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    /** In lower case. */
    email: text().notNull(),
    role: text().$type<Role>().notNull(),
    /** SHA-256 of the token in the link, in hex. The token itself is kept nowhere. */
    hash: text().notNull().unique(),
    /** `key_…` or `per_…`. */
    invited_by: text().notNull(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    accepted_at: integer(),
  },
  (table) => [index("invitations_by_time").on(table.org_id, table.created_at, table.id)],
);
export type InvitationRow = typeof invitations.$inferSelect;

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().primaryKey(),
    org_id: text().notNull(),
    /** Null: any project of the organisation. */
    project_id: text(),
    /** The person whose key it is, who loses it with the membership; null for a program's. */
    person_id: text(),
    name: text().notNull(),
    /** SHA-256 of the whole token, in hex. The token itself is kept nowhere. */
    hash: text().notNull().unique(),
    /** The first and the last characters of the token, to know it by. */
    prefix: text().notNull(),
    last4: text().notNull(),
    /** What it may do; of a person's key, at most what the role may. */
    scopes: text({ mode: "json" }).$type<readonly Permission[]>().notNull(),
    /** Null: only the organisation's limit holds. */
    requests_per_minute: integer(),
    /** Who made it: `key_…`, `per_…`, or `bootstrap`. */
    created_by: text().notNull(),
    created_at: integer().notNull(),
    /** Null: never. A key that was rotated works until here. */
    expires_at: integer(),
    revoked_at: integer(),
    /** The key that takes its place. */
    rotated_to: text(),
    /** The person who made it, by whichever keys; null: no person did, or it is the person's own. */
    maker_id: text(),
  },
  (table) => [
    index("api_keys_by_time").on(table.org_id, table.created_at, table.id),
    index("api_keys_by_person").on(table.org_id, table.person_id),
  ],
);
export type ApiKeyRow = typeof apiKeys.$inferSelect;

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
