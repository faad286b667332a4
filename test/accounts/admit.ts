/** Creates organisations, projects and keys for tests directly in the database. */
import { env } from "cloudflare:workers";
import { drizzle } from "drizzle-orm/d1";
import { type ApiKeyRow, apiKeys } from "../../src/accounts/tables.ts";
import type { Scope } from "../../src/contract/scope.ts";
import { mintToken } from "../../src/core/ids.ts";
import { databaseOf } from "../../src/kernel/db/database.ts";
import { organizations, projects } from "../../src/kernel/db/schema.ts";
import { minting, sha256Hex } from "../../src/kernel/kit/secrets.ts";

/** A key with all scopes in the project. Creates the organisation and the project if they do not exist. */
export async function admit(scope: Scope, changes: Partial<ApiKeyRow> = {}): Promise<string> {
  const { orgId, projectId } = scope;
  const d1 = drizzle(databaseOf(env).of(orgId));
  const organization = { id: orgId, name: orgId, limits: {}, allowed_hosts: null, created_at: 0, deleted_at: null };
  const project = { id: projectId, org_id: orgId, name: projectId, retention: {}, created_at: 0, deleted_at: null };
  await d1.batch([
    d1.insert(organizations).values(organization).onConflictDoNothing(),
    d1.insert(projects).values(project).onConflictDoNothing(),
  ]);
  const token = mintToken("rk", minting(env, 0, orgId));
  await d1.insert(apiKeys).values({ ...keyRow(scope, token), ...changes });
  return token;
}

/** The row of a key. */
export function keyRow({ orgId, projectId }: Scope, token: string): ApiKeyRow {
  return {
    id: `key_${crypto.randomUUID()}`,
    org_id: orgId,
    project_id: projectId,
    person_id: null,
    name: "test",
    hash: sha256Hex(token),
    prefix: token.slice(0, 7),
    last4: token.slice(-4),
    scopes: ["admin"],
    requests_per_minute: null,
    created_by: "bootstrap",
    created_at: 0,
    expires_at: null,
    revoked_at: null,
    rotated_to: null,
    maker_id: null,
  };
}
