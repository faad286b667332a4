/** Reads a wrangler.toml as wrangler parses it, and the bindings that this release's Worker needs. All offline. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import * as z from "zod";
import { runWrangler } from "./bundle.ts";

const Consumer = z.object({
  queue: z.string(),
  dead_letter_queue: z.string().optional(),
  max_batch_size: z.number().optional(),
});

/** The fields of wrangler's parsed configuration that a deployment of Rollcall depends on. */
const Config = z.object({
  name: z.string().optional(),
  main: z.string().optional(),
  compatibility_date: z.string().optional(),
  compatibility_flags: z.array(z.string()),
  workers_dev: z.boolean().optional(),
  route: z.unknown(),
  routes: z.array(z.unknown()).optional(),
  limits: z.object({ cpu_ms: z.number().optional() }).optional(),
  observability: z
    .object({
      enabled: z.boolean().optional(),
      logs: z.object({ invocation_logs: z.boolean().optional() }).optional(),
    })
    .optional(),
  triggers: z.object({ crons: z.array(z.string()).optional() }),
  vars: z.record(z.string(), z.unknown()),
  secrets: z.object({ required: z.array(z.string()).optional() }).optional(),
  queues: z.object({
    producers: z.array(z.object({ binding: z.string(), queue: z.string() })).optional(),
    consumers: z.array(Consumer).optional(),
  }),
  d1_databases: z.array(
    z.object({
      binding: z.string(),
      database_name: z.string().optional(),
      database_id: z.string().optional(),
      migrations_dir: z.string().optional(),
    }),
  ),
});

const Bindings = z.record(z.string(), z.object({ type: z.string(), class_name: z.string().optional() }));

export type QueueConsumer = z.infer<typeof Consumer>;

export interface Deployment extends z.infer<typeof Config> {
  /** All bindings, including variables, by name. `type` is wrangler's name: "d1", "queue", "plain_text", … */
  readonly bindings: z.infer<typeof Bindings>;
  /** Classes of Durable Objects after all migrations; true: with SQLite. */
  readonly classes: ReadonlyMap<string, boolean>;
  /** The folder of D1's migrations, and the names of its files. */
  readonly migrations: { readonly folder: string; readonly names: readonly string[] };
}

/** The file is not a valid configuration for wrangler. The message is wrangler's. */
export class UnreadableConfig extends Error {
  override readonly name = "UnreadableConfig";
}

/** Loads wrangler, which takes more than a second. Throws UnreadableConfig. */
export async function readDeployment(path: string): Promise<Deployment> {
  const file = resolve(path);
  // Wrangler's messages about the file are in its error. stdout belongs to the command.
  process.env["WRANGLER_LOG"] ??= "none";
  const wrangler = await import("wrangler");
  try {
    const read = wrangler.unstable_readConfig({ config: file }, { hideWarnings: true });
    const config = Config.parse(read);
    const bindings = Bindings.parse(wrangler.unstable_convertConfigBindingsToStartWorkerBindings(read));
    const classes = wrangler.unstable_getDurableObjectClassNameToUseSQLiteMap(read.migrations);
    const [database] = config.d1_databases;
    const folder = resolve(dirname(file), database?.migrations_dir ?? "migrations");
    return { ...config, bindings, classes, migrations: { folder, names: sqlFilesIn(folder) } };
  } catch (error) {
    if (error instanceof z.ZodError || !(error instanceof Error)) throw error;
    throw new UnreadableConfig(error.message, { cause: error });
  }
}

function sqlFilesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
}

/** A binding that the Worker reads from `env`: wrangler's type (null: any), and the class of a Durable Object. */
export interface NeededBinding {
  readonly name: string;
  readonly type: string | null;
  readonly className: string | null;
}

const TYPES: Readonly<Record<string, string>> = {
  D1Database: "d1",
  DurableObjectNamespace: "durable_object_namespace",
  Queue: "queue",
  R2Bucket: "r2_bucket",
  RateLimit: "ratelimit",
  WorkerLoader: "worker_loader",
  Fetcher: "assets",
};

/**
 * The bindings in the generated types against which the Worker was compiled. Removing a binding from wrangler.toml does
 * not change them. `root` has the worker-configuration.d.ts.
 */
export function neededBindings(root: string): NeededBinding[] {
  const types = readFileSync(join(root, "worker-configuration.d.ts"), "utf8");
  const [, members = ""] = /interface __BaseEnv_Env \{\n([\s\S]*?)\n\}/.exec(types) ?? [];
  return Array.from(
    members.matchAll(/^\t(\w+): (\w+)(?:<import\([^)]*\)\.(\w+)>)?/gm),
    ([, name = "", type = "", of]) => ({
      name,
      type: TYPES[type] ?? null,
      className: of ?? null,
    }),
  );
}

/** The size of the Worker as uploaded, gzipped, in bytes. Throws with wrangler's message if it does not bundle. */
export async function bundledBytes(path: string): Promise<number> {
  const file = resolve(path);
  const draft = mkdtempSync(join(tmpdir(), "rollcall-deploy-"));
  try {
    await runWrangler(dirname(file), ["--config", file, "--outdir", draft], undefined);
    const modules = readdirSync(draft).filter((name) => /\.(js|wasm)$/.test(name));
    return modules.reduce((sum, name) => sum + gzipSync(readFileSync(join(draft, name))).length, 0);
  } finally {
    rmSync(draft, { recursive: true });
  }
}
