/**
 * Builds the bundle of the Worker. Local runs use the same bundle as a deployment: wrangler builds both. It is built
 * again only when a source has changed: the file `.sources` next to it has the hash of its sources.
 *
 * A user's own environments, or another entry module, can be included. Then wrangler bundles a generated module that
 * imports them, in a separate folder.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { hasCode, readIfThere } from "./directory-lock.ts";
import { type EnvironmentPackage, NoEnvironmentPackage } from "./environment-package.ts";
import { tryEnvironmentModule } from "./load-environment.ts";
import { environmentExports, hashFiles, sourcesHash } from "./package-root.ts";
import { isRefusedImport, refusedImport } from "./refused-imports.ts";
import { callWrangler } from "./wrangler.ts";

/** The import names of zod, which all resolve to Rollcall's copy. An alias of `zod` does not cover `zod/v4`. */
const ZOD_NAMES = ["zod", "zod/v4", "zod/v4/core"] as const;
/**
 * What an environment gets when it imports `process`: the global object, on which `exit` throws (stage-clock.ts). The
 * exports of workerd's own module cannot be replaced; those of a CommonJS module are looked up at each use.
 */
const PROCESS_MODULE = "module.exports = globalThis.process;\n";
const PROCESS_NAMES = ["process", "node:process"] as const;

/** How to build a bundle, and the hash of its sources. */
interface Recipe {
  readonly folder: string;
  /** The hash of everything in the bundle; null if it is unknown, since nothing was bundled yet. */
  readonly hash: () => string | null;
  /** Writes index.js and index.js.map into `draft`. */
  readonly make: (draft: string) => Promise<void>;
}

/** The path of an up-to-date bundle. If the sources do not bundle, throws with the bundler's message. */
export function bundleWorker(root: string, signal?: AbortSignal): Promise<string> {
  const sources = sourcesHash(root);
  return upToDate({
    folder: join(root, "dist"),
    hash: () => sources,
    make: (draft) => runWrangler(root, ["--outdir", draft], signal),
  });
}

/** What the bundle of a Worker contains besides this package, and the folder where it is kept. */
export interface WorkerParts {
  readonly environments: readonly EnvironmentPackage[];
  /** A module that exports everything that the root's src/index.ts exports. */
  readonly entry: string;
  readonly folder: string;
  /** If it is aborted, the build stops and throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The path of a bundle with these parts. Throws NoEnvironmentPackage if an environment does not load or bundle. */
export function bundleWorkerWith(root: string, parts: WorkerParts): Promise<string> {
  const { environments, folder, signal } = parts;
  const sources = sourcesHash(root);
  const entry = entryModule(root, parts);
  const inputs = join(folder, "inputs.json");
  return upToDate({
    folder,
    hash: () => hashWith([sources, entry], inputs),
    make: async (draft) => {
      // Each environment is tried first, so that an error names its own files.
      for (const environment of environments) await tryEnvironmentModule(environment, { signal });
      writeFileSync(join(folder, "index.ts"), entry);
      writeFileSync(join(folder, "process.cjs"), PROCESS_MODULE);
      writeFileSync(join(folder, "wrangler.toml"), configWithAliases(root, folder));
      const flags = ["index.ts", "--outdir", draft, "--metafile", inputs];
      await runWrangler(folder, flags, signal).catch((error: unknown) => {
        signal?.throwIfAborted();
        // Without environments the Worker always bundles (every check does it), so an environment is at fault.
        const why = error instanceof Error ? error.message : String(error);
        throw new NoEnvironmentPackage(why, { cause: error });
      });
      refuseImportsOf(environments, root, inputs);
    },
  });
}

/** The root's wrangler.toml, with an alias for each name that an environment may import. */
function configWithAliases(root: string, folder: string): string {
  const aliases: readonly (readonly [name: string, file: string])[] = [
    ...environmentExports(root),
    ...ZOD_NAMES.map((name) => [name, fileURLToPath(import.meta.resolve(name))] as const),
    ...PROCESS_NAMES.map((name) => [name, join(folder, "process.cjs")] as const),
  ];
  // A JSON string is a valid TOML string.
  const lines = aliases.map(([name, file]) => `${JSON.stringify(name)} = ${JSON.stringify(file)}`);
  // The page is built separately, and its paths are relative to the root.
  const config = readFileSync(join(root, "wrangler.toml"), "utf8").replaceAll(/^\[(assets|build)\]\n(.+\n)*/gm, "");
  return [config, "[alias]", ...lines, ""].join("\n");
}

/** The imports load the registry and the environments first, and no request arrives before that. */
function entryModule(root: string, { environments, entry }: WorkerParts): string {
  const registry = JSON.stringify(join(root, "src/kernel/environment/environments.ts"));
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

const Import = z.object({ path: z.string(), original: z.string().optional() });
const Metafile = z.object({ inputs: z.record(z.string(), z.object({ imports: z.array(Import) })) });

/**
 * Throws NoEnvironmentPackage if an environment, or a package that it imports, imports a module of a runtime. The
 * bundle for Node was already checked, but a package may have other files for workerd.
 */
function refuseImportsOf(environments: readonly EnvironmentPackage[], root: string, metafile: string): void {
  const folder = dirname(metafile);
  const { inputs } = Metafile.parse(JSON.parse(readFileSync(metafile, "utf8")));
  const sources = join(root, "src") + sep;
  const met = new Set(environments.map(({ entry }) => relative(folder, entry).replaceAll(sep, "/")));
  // The set grows during the iteration.
  for (const file of met) {
    const own = resolve(folder, file);
    for (const { path, original = path } of own.startsWith(sources) ? [] : (inputs[file]?.imports ?? [])) {
      if (isRefusedImport(original)) throw new NoEnvironmentPackage(refusedImport(original, own));
      met.add(path);
    }
  }
}

/** Hashes every file of the last bundle, including files of packages that the environments import. */
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
  // Built in a draft folder and moved into place: another command may be reading or building it now.
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

/**
 * Builds what wrangler would upload, without uploading it. `folder` has the wrangler.toml, unless the flags name
 * another file. Throws with wrangler's message.
 */
export async function runWrangler(
  folder: string,
  flags: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    await callWrangler(["deploy", "--dry-run", ...flags], { folder, signal });
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof Error)) throw error;
    throw new Error(`the Worker could not be bundled:\n${error.message}`, { cause: error });
  }
}
