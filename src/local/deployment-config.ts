/**
 * The configuration that wrangler deploys: the release's wrangler.toml with the names and ids of one deployment. It is
 * made at each deploy and thrown away afterwards, so there is nothing to merge when the release changes.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Unstable_RawConfig } from "wrangler";
import { type DeploymentRecord, databaseIds, databaseName } from "./deployment-file.ts";

/** A configuration for wrangler, as it is written. */
export type RawConfig = Unstable_RawConfig;

/** A deployment whose account and database are known. */
export type PlacedDeployment = DeploymentRecord & { readonly account_id: string; readonly database_id: string };

/** What wrangler uploads: built already, and the same as on one machine. */
export interface Built {
  /** The Worker's bundle. */
  readonly bundle: string;
  /** The folder of the page and the other assets. */
  readonly page: string;
  /** The folder of D1's migrations. */
  readonly migrations: string;
}

/** A pure function: `released` is the release's wrangler.toml as it is written. */
export function deploymentConfig(released: RawConfig, record: PlacedDeployment, built: Built): RawConfig {
  // The bundle is minified already.
  const { build: _build, minify: _minify, keep_names: _names, ...kept } = released;
  return {
    ...kept,
    name: record.worker,
    account_id: record.account_id,
    main: built.bundle,
    no_bundle: true,
    // Only the bundle: other files next to it are of the page and of the compiler.
    find_additional_modules: false,
    assets: { ...released.assets, directory: built.page },
    // The domain is not a route here: wrangler without a terminal takes a domain away from whatever has it.
    ...{ workers_dev: record.domain === undefined, preview_urls: false },
    d1_databases: databaseIds(record).map((database_id, number) => ({
      binding: number === 0 ? "DB" : `DB_${number}`,
      database_name: databaseName(record, number),
      database_id,
      migrations_dir: built.migrations,
    })),
    r2_buckets: (released.r2_buckets ?? []).map((bucket) => ({
      ...bucket,
      bucket_name: record.bucket,
      ...(record.jurisdiction !== undefined && { jurisdiction: record.jurisdiction }),
    })),
    ...renamedQueues(released, record),
    ratelimits: (released.ratelimits ?? []).map((limit) => ({
      ...limit,
      namespace_id: namespaceOf(record, limit.name),
    })),
    vars: { ...released.vars, ...record.vars },
  };
}

/** A rate limit counts for all Workers of the account that name its namespace: each deployment has its own. */
function namespaceOf({ worker }: DeploymentRecord, limit: string): string {
  return String(createHash("sha256").update(`${worker}/${limit}`).digest().readUIntBE(0, 4));
}

/** The queues of the release under the names of the deployment. */
export function renamedQueues(
  { queues }: RawConfig,
  { queue_prefix: prefix }: Pick<DeploymentRecord, "queue_prefix">,
): Pick<RawConfig, "queues"> {
  const queue = (name: string) => `${prefix}${name}`;
  return {
    queues: {
      producers: (queues?.producers ?? []).map(({ queue: name = "", ...producer }) => ({
        ...producer,
        queue: queue(name),
      })),
      consumers: (queues?.consumers ?? []).map(({ dead_letter_queue: dead, ...consumer }) => ({
        ...consumer,
        queue: queue(consumer.queue),
        ...(dead !== undefined && { dead_letter_queue: queue(dead) }),
      })),
    },
  };
}

/** The names of all queues of a configuration, each once. */
export function queuesOf({ queues = {} }: RawConfig): string[] {
  const { producers = [], consumers = [] } = queues;
  const all = [
    ...producers.map(({ queue }) => queue),
    ...consumers.flatMap(({ queue, dead_letter_queue: dead }) => [queue, dead]),
  ];
  return [...new Set(all.filter((name) => name !== undefined))].sort();
}

/** The release's wrangler.toml as it is written. Loads wrangler. */
export async function readReleased(root: string): Promise<RawConfig> {
  const { experimental_readRawConfig: readToml } = await import("wrangler");
  return readToml({ config: join(root, "wrangler.toml") }).rawConfig;
}

/** Calls `use` with the configuration as a file, in a folder that exists only until it has ended. */
export async function withConfig<T>(
  config: RawConfig,
  use: (written: { readonly folder: string; readonly file: string }) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-deploy-"));
  const file = join(folder, "wrangler.json");
  try {
    writeFileSync(file, JSON.stringify(config, null, 2));
    return await use({ folder, file });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
