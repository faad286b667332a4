/**
 * The bundle that deploys is the bundle that runs here: wrangler makes it, and it is made again only when a source
 * changed. `dist/.sources` holds the hash of what `dist/index.js` was made from.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";

/** What the Worker can import, and what decides how it is bundled. The command line and its parts are not in it. */
const SOURCES = [
  "src/index.ts",
  "src/{core,db,clients,runtime,api,web}/**/*",
  "environments/**/*.{ts,json,md,jsonl}",
  "wrangler.toml",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
];

/** The path of an up-to-date bundle. Throws with the bundler's own words when the sources do not bundle. */
export async function bundleWorker(root: string): Promise<string> {
  const folder = join(root, "dist");
  const bundle = join(folder, "index.js");
  const hash = hashSources(root);
  if (isFresh(folder, bundle, hash)) return bundle;
  // Made aside and moved into place: another command may be reading or making the bundle at this moment.
  const draft = join(folder, `.draft-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    await runWrangler(root, draft);
    for (const name of ["index.js.map", "index.js"])
      renameSync(join(draft, name), join(folder, name));
    writeFileSync(join(folder, ".sources"), hash);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return bundle;
}

function hashSources(root: string): string {
  const files = globSync(SOURCES, { cwd: root, withFileTypes: true, exclude: ["**/node_modules"] })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const hash = createHash("sha256");
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}

function isFresh(folder: string, bundle: string, hash: string): boolean {
  try {
    readFileSync(bundle);
    return readFileSync(join(folder, ".sources"), "utf8") === hash;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

async function runWrangler(root: string, outdir: string): Promise<void> {
  const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
  const script = join(wrangler, "..", "bin", "wrangler.js");
  const args = [script, "deploy", "--dry-run", "--outdir", outdir];
  const env = {
    ...process.env,
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_WRITE_LOGS: "false",
    FORCE_COLOR: "0",
  };
  try {
    await promisify(execFile)(process.execPath, args, { cwd: root, env });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const said = ["stdout", "stderr"].map((name) => Reflect.get(error, name)).join("\n");
    throw new Error(`the Worker could not be bundled:\n${said.trim() || error.message}`, {
      cause: error,
    });
  }
}
