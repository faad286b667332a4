/**
 * What would be deployed: a wrangler.toml as wrangler itself reads it, and what the Worker of this Rollcall needs of one.
 * Nothing here asks Cloudflare anything.
 */
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

/** Of what wrangler makes of a wrangler.toml: the fields a deployment of ours depends on. */
const Config = z.object({
  name: z.string().optional(),
  main: z.string().optional(),
  compatibility_date: z.string().optional(),
  compatibility_flags: z.array(z.string()),
  workers_dev: z.boolean().optional(),
  route: z.unknown(),
  routes: z.array(z.unknown()).optional(),
  limits: z.object({ cpu_ms: z.number().optional() }).optional(),
  observability: z.object({ enabled: z.boolean().optional() }).optional(),
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
  /** Everything bound, variables too, by name. `type` is wrangler's word: "d1", "queue", "plain_text", … */
  readonly bindings: z.infer<typeof Bindings>;
  /** Classes of Durable Objects that its migrations leave behind; true: with SQLite. */
  readonly classes: ReadonlyMap<string, boolean>;
  /** The folder of D1's migrations, and the names of the files in it. */
  readonly migrations: { readonly folder: string; readonly names: readonly string[] };
}

/** A file that wrangler cannot read as its configuration. The message is wrangler's own. */
export class UnreadableConfig extends Error {
  override readonly name = "UnreadableConfig";
}

/** Loads wrangler, which takes more than a second. Throws UnreadableConfig. */
export async function readDeployment(path: string): Promise<Deployment> {
  const file = resolve(path);
  // What wrangler has to say of the file comes with its error; stdout belongs to the command.
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

/** What the Worker reads from its `env`: wrangler's word for its type (null: any), and the class of an object. */
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
  Fetcher: "assets",
};

/**
 * The bindings of the generated types, which say what the Worker was compiled against: whoever takes a binding out of
 * wrangler.toml has not changed them. `root` has the worker-configuration.d.ts.
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

/** The size of the Worker as it would be uploaded, in bytes, gzipped. Throws with wrangler's words if it does not bundle. */
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
