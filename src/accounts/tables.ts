/** Tables of people, keys, invitations and sign-ins. Only the hashes of tokens are stored. */
import { isNotNull } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { Permission, Role } from "../contract/identity.ts";

/**
 * A person, who may belong to several organisations. A person without an organisation has no row. Several people may
 * have been invited with one address; at most one of them has proved it.
 */
export const people = sqliteTable(
  "people",
  {
    id: text().primaryKey(),
    /** The address of their first invitation, in lower case. */
    email: text().notNull(),
    created_at: integer().notNull(),
    /** When Cloudflare Access confirmed the address; null: never. */
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
    /** The person's name in this organisation; other organisations do not see it. */
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
    /** SHA-256 of the token in the link, in hex. The token itself is not stored. */
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
    /** The person who owns the key and loses it with the membership; null for a program's key. */
    person_id: text(),
    name: text().notNull(),
    /** SHA-256 of the whole token, in hex. The token itself is not stored. */
    hash: text().notNull().unique(),
    /** The first and the last characters of the token, to recognise it. */
    prefix: text().notNull(),
    last4: text().notNull(),
    /** Its scopes; for a person's key, at most those of the role. */
    scopes: text({ mode: "json" }).$type<readonly Permission[]>().notNull(),
    /** Null: only the organisation's limit applies. */
    requests_per_minute: integer(),
    /** The creator: `key_…`, `per_…`, or `bootstrap`. */
    created_by: text().notNull(),
    created_at: integer().notNull(),
    /** Null: never. For a rotated key, the end of the overlap. */
    expires_at: integer(),
    revoked_at: integer(),
    /** The key that replaces it. */
    rotated_to: text(),
    /** The person who made it, with any of their keys; null: no person, or it is the person's own key. */
    maker_id: text(),
  },
  (table) => [
    index("api_keys_by_time").on(table.org_id, table.created_at, table.id),
    index("api_keys_by_person").on(table.org_id, table.person_id),
  ],
);
export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** The owner of a session or a code: a key or a person; the other is null. */
const whose = {
  org_id: text().notNull(),
  /** The key's project; null: any project of the organisation. */
  project_id: text(),
  key_id: text(),
  person_id: text(),
};

/** A signed-in browser. It has the current permissions of its key or person. */
export const webSessions = sqliteTable(
  "web_sessions",
  {
    id: text().primaryKey(),
    ...whose,
    /** SHA-256 of the cookie's value, in hex. */
    hash: text().notNull().unique(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
  },
  (table) => [index("web_sessions_by_time").on(table.org_id, table.created_at, table.id)],
);
export type WebSessionRow = typeof webSessions.$inferSelect;

/** A one-time code that starts a session. */
export const signInCodes = sqliteTable(
  "sign_in_codes",
  {
    /** SHA-256 of the code, in hex. */
    hash: text().primaryKey(),
    ...whose,
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    /** The latest end of its session; null: only the session's own lifetime applies. */
    session_until: integer(),
  },
  (table) => [index("sign_in_codes_by_time").on(table.org_id, table.created_at)],
);
export type SignInCodeRow = typeof signInCodes.$inferSelect;
