/** Deploys and deletes the probe Worker: with its database, bucket and queue it is as separate as the preview. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CloudflareAccount } from "../../../src/local/cloudflare/account.ts";
import { type RawConfig, withConfig } from "../../../src/local/deployment-config.ts";
import { newSecret, readSecrets, writeSecrets } from "../../../src/local/deployment-file.ts";
import { callWrangler } from "../../../src/local/wrangler.ts";

export interface ProbeNames {
  readonly worker: string;
  readonly database: string;
  readonly bucket: string;
  readonly queue: string;
}

export function probeNames(name: string): ProbeNames {
  const worker = `rollcall-${name}-probe`;
  return { worker, database: worker, bucket: worker, queue: worker };
}

interface Placed {
  readonly accountId: string;
  readonly databaseId: string;
  readonly productBucket: string;
}

/** With the flags of the platform, so that its calls leave as those of the platform do. */
export function probeConfig(released: RawConfig, names: ProbeNames, placed: Placed): RawConfig {
  const { queue } = names;
  return {
    name: names.worker,
    account_id: placed.accountId,
    main: join(import.meta.dirname, "probe-worker.ts"),
    ...(released.compatibility_date !== undefined && { compatibility_date: released.compatibility_date }),
    ...(released.compatibility_flags !== undefined && { compatibility_flags: released.compatibility_flags }),
    workers_dev: true,
    preview_urls: false,
    observability: { enabled: false },
    durable_objects: {
      bindings: [
        { name: "PROBE", class_name: "ProbeObject" },
        { name: "PROBE_SQL", class_name: "ProbeSqlObject" },
      ],
    },
    migrations: [{ tag: "v1", new_sqlite_classes: ["ProbeObject", "ProbeSqlObject"] }],
    d1_databases: [{ binding: "DB", database_name: names.database, database_id: placed.databaseId }],
    r2_buckets: [
      { binding: "STORE", bucket_name: names.bucket },
      { binding: "PRODUCT_STORE", bucket_name: placed.productBucket },
    ],
    // The settings of the platform's own queues.
    queues: {
      producers: [{ binding: "QUEUE", queue }],
      consumers: [{ queue, max_batch_size: 10, max_batch_timeout: 0, max_retries: 1 }],
    },
  };
}

interface Deploying {
  readonly account: CloudflareAccount;
  readonly released: RawConfig;
  readonly names: ProbeNames;
  readonly productBucket: string;
  /** Where the token is kept, which only its owner can read. */
  readonly secrets: string;
  readonly signal: AbortSignal;
}

/** Returns the token of the Worker, the id of its database, and how to upload it again. */
export async function deployProbe({ account, released, names, productBucket, secrets, signal }: Deploying) {
  if (readSecrets(secrets)["TOKEN"] === undefined) writeSecrets(secrets, { TOKEN: newSecret() });
  const { TOKEN: token = "" } = readSecrets(secrets);
  const databaseId = (await account.findDatabase(names.database)) ?? (await account.createDatabase(names.database, {}));
  if (!(await account.hasBucket(names.bucket, {}))) await account.createBucket(names.bucket, {});
  if (!(await account.listQueues()).has(names.queue)) await account.createQueue(names.queue);
  const config = probeConfig(released, names, { accountId: account.id, databaseId, productBucket });
  const upload = () =>
    withConfig(config, async ({ folder, file }) => {
      await callWrangler(["deploy", "--config", file, "--secrets-file", secrets], { folder, signal });
    });
  await upload();
  return { token, databaseId, upload };
}

const ASK_EVERY_MS = 1000;

/** Waits until the Worker answers: a new address may take a minute until it resolves. */
export async function waitForProbe(
  url: string,
  token: string,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
) {
  const until = performance.now() + waitMs;
  for (;;) {
    const answer = await fetch(new URL("/now", url), { headers: { authorization: `Bearer ${token}` }, signal }).then(
      (reply) => reply.status,
      (thrown: unknown) => {
        signal.throwIfAborted();
        return String(thrown);
      },
    );
    if (answer === 200) return;
    if (performance.now() > until) throw new Error(`the probe Worker at ${url} does not answer: ${answer}`);
    await sleep(ASK_EVERY_MS, undefined, { signal });
  }
}

export interface Deleted {
  /** Why the Worker, or its queue, was not deleted; null if it was. */
  readonly worker: string | null;
  readonly queue: string | null;
  /** What is left at Cloudflare, each with the reason. */
  readonly left: readonly string[];
}

/** Deletes what exists. A failure does not keep the rest from being deleted. */
export async function deleteProbe(account: CloudflareAccount, names: ProbeNames, secrets: string): Promise<Deleted> {
  const worker = await failureOf(() => account.deleteWorker(names.worker));
  const queue = await failureOf(async () => {
    const id = (await account.listQueues()).get(names.queue);
    if (id !== undefined) await account.deleteQueue(id);
  });
  const database = await failureOf(async () => {
    const id = await account.findDatabase(names.database);
    if (id !== null) await account.deleteDatabase(id);
  });
  const bucket = await failureOf(async () => {
    if (!(await account.deleteBucket(names.bucket, {}))) throw new Error("it has objects");
  });
  const all = Object.entries({ worker, queue, database, bucket });
  const left = all.flatMap(([kind, why]) => (why === null ? [] : [`the ${kind} ${names.worker}: ${why}`]));
  if (left.length === 0) rmSync(secrets, { force: true });
  return { worker, queue, left };
}

async function failureOf(work: () => Promise<void>): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}
