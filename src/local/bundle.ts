/**
 * The bundle that deploys is the bundle that runs here: wrangler makes it, and it is made again only when a source
 * changed. `.sources` beside it holds the hash of what it was made from. With environments of one's own, or around
 * another entry, it is made the same way, from a generated module in a folder of its own.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import * as z from "zod";
import { hasCode, readIfThere } from "./directory-lock.ts";
import { type EnvironmentPackage, NoEnvironmentPackage } from "./environment-package.ts";
import { tryEnvironmentModule } from "./load-environment.ts";
import { hashFiles, sourcesHash } from "./package-root.ts";

/** What an environment may import of zod: each is Rollcall's own copy. An alias does not hold for what is below it. */
const ZOD_DOORS = ["zod", "zod/v4", "zod/v4/core"] as const;
/**
 * What Node's module of `process` is to an environment: the global, whose `exit` is an error (no-exit.ts). The names of the
 * module itself cannot be given other values in a Worker; those of one in CommonJS are looked up when they are used.
 */
const PROCESS_MODULE = "module.exports = globalThis.process;\n";
const PROCESS_DOORS = ["process", "node:process"] as const;

/** How one bundle is made, and what it is made of. */
interface Recipe {
  readonly folder: string;
  /** Differs when a source changed since it was asked first; null before the first time a bundle is made. */
  readonly hash: () => string | null;
  /** Writes index.js and index.js.map into `draft`. */
  readonly make: (draft: string) => Promise<void>;
}

/** The path of an up-to-date bundle. Throws with the bundler's own words when the sources do not bundle. */
export function bundleWorker(root: string, signal?: AbortSignal): Promise<string> {
  const sources = sourcesHash(root);
  return upToDate({
    folder: join(root, "dist"),
    hash: () => sources,
    make: (draft) => runWrangler(root, ["--outdir", draft], signal),
  });
}

/** What the bundle of a Worker holds beside this package's own, and where it is kept. */
export interface WorkerParts {
  readonly environments: readonly EnvironmentPackage[];
  /** Exports all that src/index.ts of the root does. */
  readonly entry: string;
  readonly folder: string;
  /** Ends the work with its reason when it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** The same around other parts. Throws NoEnvironmentPackage when one of the environments cannot be loaded or does not bundle. */
export function bundleWorkerWith(root: string, parts: WorkerParts): Promise<string> {
  const { environments, folder, signal } = parts;
  const sources = sourcesHash(root);
  const entry = entryModule(root, parts);
  const inputs = join(folder, "inputs.json");
  return upToDate({
    folder,
    hash: () => hashWith([sources, entry], inputs),
    make: async (draft) => {
      // Here first: what is wrong with one is said in terms of its own files.
      for (const environment of environments) await tryEnvironmentModule(environment, { signal });
      writeFileSync(join(folder, "index.ts"), entry);
      writeFileSync(join(folder, "process.cjs"), PROCESS_MODULE);
      writeFileSync(join(folder, "wrangler.toml"), configWithAliases(root, folder));
      const flags = ["index.ts", "--outdir", draft, "--metafile", inputs];
      await runWrangler(folder, flags, signal).catch((error: unknown) => {
        signal?.throwIfAborted();
        // Without them the Worker is known to bundle.
        const why = error instanceof Error ? error.message : String(error);
        throw new NoEnvironmentPackage(why, { cause: error });
      });
    },
  });
}

/** The root's, and what an import of an environment stands for. */
function configWithAliases(root: string, folder: string): string {
  const aliases: readonly (readonly [door: string, file: string])[] = [
    ["rollcall", join(root, "src/core/entry.ts")],
    ["rollcall/testing", join(root, "src/core/testing.ts")],
    ...ZOD_DOORS.map((door) => [door, fileURLToPath(import.meta.resolve(door))] as const),
    ...PROCESS_DOORS.map((door) => [door, join(folder, "process.cjs")] as const),
  ];
  // A text of JSON is a text of TOML.
  const lines = aliases.map(([door, file]) => `${JSON.stringify(door)} = ${JSON.stringify(file)}`);
  return [readFileSync(join(root, "wrangler.toml"), "utf8"), "[alias]", ...lines, ""].join("\n");
}

/** Both sides are loaded before the entry module's own lines run: no request comes earlier. */
function entryModule(root: string, { environments, entry }: WorkerParts): string {
  const registry = JSON.stringify(join(root, "src/runtime/environment/environments.ts"));
  const worker = JSON.stringify(entry);
  return [
    `import { registerEnvironment } from ${registry};`,
    ...environments.map(({ entry }, index) => {
      return `import { loadEnvironment as environment${index} } from ${JSON.stringify(entry)};`;
    }),
    `export * from ${worker};`,
    `export { default } from ${worker};`,
    ...environments.map(({ id, version, digest }, index) => {
      const pin = JSON.stringify({ id, version, digest });
      return `registerEnvironment({ ...${pin}, ...environment${index} });`;
    }),
    "",
  ].join("\n");
}

const Metafile = z.object({ inputs: z.record(z.string(), z.unknown()) });

/** Over everything the last bundle was made of, the packages that the environments import included. */
function hashWith(known: readonly string[], inputs: string): string | null {
  const hash = createHash("sha256").update(known.join("\0"));
  const folder = join(inputs, "..");
  try {
    const files = Metafile.parse(JSON.parse(readFileSync(inputs, "utf8"))).inputs;
    return hashFiles(hash, folder, Object.keys(files).sort());
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

async function upToDate({ folder, hash, make }: Recipe): Promise<string> {
  const bundle = join(folder, "index.js");
  const madeFrom = readIfThere(join(folder, ".sources"));
  if (madeFrom !== null && madeFrom === hash() && existsSync(bundle)) return bundle;
  // Made aside and moved into place: another command may be reading or making the bundle at this moment.
  const draft = join(folder, `.draft-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    await make(draft);
    for (const name of ["index.js.map", "index.js"]) renameSync(join(draft, name), join(folder, name));
    writeFileSync(join(folder, ".sources"), hash() ?? "");
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return bundle;
}

/** `folder` has the wrangler.toml. */
async function runWrangler(folder: string, flags: readonly string[], signal: AbortSignal | undefined): Promise<void> {
  const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
  const script = join(wrangler, "..", "bin", "wrangler.js");
  const args = [script, "deploy", "--dry-run", ...flags];
  const env = {
    ...process.env,
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_WRITE_LOGS: "false",
    FORCE_COLOR: "0",
    // Its own code is compiled once, not for every bundle.
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(tmpdir(), "node-compile-cache"),
  };
  try {
    await promisify(execFile)(process.execPath, args, { cwd: folder, env, signal });
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof Error)) throw error;
    const said = ["stdout", "stderr"].map((name) => Reflect.get(error, name)).join("\n");
    const why = stripVTControlCharacters(said).trim() || error.message;
    throw new Error(`the Worker could not be bundled:\n${why}`, { cause: error });
  }
}
