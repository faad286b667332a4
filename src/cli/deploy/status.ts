/** Shows what exists of a deployment. Changes nothing. */
import { join } from "node:path";
import type { CloudflareApi } from "../../local/cloudflare/api.ts";
import { appliedMigrations } from "../../local/cloudflare/migrate-database.ts";
import { queuesOf, readReleased, renamedQueues } from "../../local/deployment-config.ts";
import { databaseIds, databaseName } from "../../local/deployment-file.ts";
import { migrationsIn } from "../../local/migrate.ts";
import { PACKAGE_ROOT, rollcallVersion } from "../../local/package-root.ts";
import { askReadiness, drainingSince } from "../../local/readyz.ts";
import { accountOf, addressOf, recordedDeployment } from "./deployment.ts";

export interface DeploymentStatus {
  readonly name: string;
  readonly account_id: string;
  readonly url: string;
  /** "ready", or the answer of /readyz in words. */
  readonly readiness: string;
  /** When a drain began that was not ended, in ISO 8601; null if there is none. */
  readonly draining_since: string | null;
  readonly worker: { readonly name: string; readonly version: string | null; readonly since: string | null };
  readonly secrets: readonly string[];
  readonly database: { readonly name: string; readonly id: string | null };
  /** Its further D1 databases, by number from 1, each with its last migration. */
  readonly more_databases: readonly { readonly name: string; readonly id: string; readonly applied: string | null }[];
  /** The last migration that the database has, and the last one of this release. */
  readonly schema: { readonly applied: string | null; readonly release: string | null };
  readonly bucket: { readonly name: string; readonly exists: boolean };
  readonly queues: { readonly existing: readonly string[]; readonly missing: readonly string[] };
  /** The version of this Rollcall, which `rollcall deploy` would deploy. */
  readonly release: string;
}

export async function readStatus(
  api: CloudflareApi,
  { file, name }: { readonly file: string; readonly name: string },
  signal: AbortSignal,
): Promise<DeploymentStatus> {
  const record = await recordedDeployment(file, name);
  const account = await accountOf(api, record.account_id);
  const url = await addressOf(account, record);
  const [version, secrets, id, bucket, queues, released] = await Promise.all([
    account.findVersion(record.worker),
    account.secretsOf(record.worker),
    account.findDatabase(record.database),
    account.hasBucket(record.bucket, record),
    account.listQueues(),
    readReleased(PACKAGE_ROOT),
  ]);
  const draining = secrets === null ? null : await drainingSince(url, signal);
  const applied = id === null ? [] : await appliedMigrations(account.database(id));
  const more = databaseIds(record).slice(1);
  const more_databases = await Promise.all(
    more.map(async (id, at) => {
      const applied = await appliedMigrations(account.database(id));
      return { name: databaseName(record, at + 1), id, applied: applied.at(-1) ?? null };
    }),
  );
  const needed = queuesOf(renamedQueues(released, record));
  return {
    ...{ name, account_id: account.id, url },
    readiness: secrets === null ? "nothing is deployed" : await askReadiness(url, signal),
    draining_since: draining?.toISOString() ?? null,
    worker: { name: record.worker, version: version?.id ?? null, since: version?.since ?? null },
    secrets: secrets ?? [],
    database: { name: record.database, id },
    more_databases,
    schema: {
      applied: applied.at(-1) ?? null,
      release: migrationsIn(join(PACKAGE_ROOT, "migrations")).at(-1) ?? null,
    },
    bucket: { name: record.bucket, exists: bucket },
    queues: {
      existing: needed.filter((queue) => queues.has(queue)),
      missing: needed.filter((queue) => !queues.has(queue)),
    },
    release: rollcallVersion(),
  };
}
