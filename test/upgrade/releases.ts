/** The bundles of versions of the Worker: that of the working tree, release 0.2.0, and one with another protocol. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundleWorker } from "../../src/local/bundle.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";

export interface Release {
  readonly name: "old" | "new" | "next";
  /** The folder with its wrangler.toml. */
  readonly root: string;
  readonly bundle: string;
}

/** Where release 0.2.0 is. A clone may lack the tag. */
const REFERENCES = ["v0.2.0", "709fa775"];

/** The commit of release 0.2.0; null if this clone does not have it. */
export function findOldCommit(): string | null {
  for (const reference of REFERENCES) {
    try {
      return git("rev-parse", "--verify", "--quiet", `${reference}^{commit}`).toString().trim();
    } catch {
      // Not in this clone: the next one is tried.
    }
  }
  return null;
}

export const MISSING = `this clone has neither ${REFERENCES.join(" nor ")}: git fetch --unshallow --tags`;

export async function bundleNew(): Promise<Release> {
  return { name: "new", root: PACKAGE_ROOT, bundle: await bundleWorker(PACKAGE_ROOT) };
}

const PROTOCOL = "src/core/protocol/environment-code.ts";

/** A later version, in an empty folder, which speaks protocol 2 with environment code. */
export async function bundleNext(root: string): Promise<Release> {
  const files = git("ls-files", "--cached", "-z");
  const archive = execFileSync("tar", ["-c", "--null", "-T", "-"], {
    cwd: PACKAGE_ROOT,
    input: files,
    maxBuffer: MOST,
  });
  execFileSync("tar", ["-x", "-C", root], { input: archive });
  const file = join(root, PROTOCOL);
  const source = readFileSync(file, "utf8");
  writeFileSync(file, source.replace("ENVIRONMENT_PROTOCOL = 1;", "ENVIRONMENT_PROTOCOL = 2;"));
  linkModules(root);
  return { name: "next", root, bundle: await bundleWorker(root) };
}

/** Unpacks the sources into an empty folder, and bundles them with today's packages: it needs no other ones. */
export async function bundleOld(commit: string, root: string): Promise<Release> {
  const archive = git("archive", commit);
  execFileSync("tar", ["-x", "-C", root], { input: archive });
  linkModules(root);
  return { name: "old", root, bundle: await bundleWorker(root) };
}

function linkModules(root: string): void {
  const modules = join(PACKAGE_ROOT, "node_modules");
  const own = join(root, "node_modules");
  mkdirSync(join(own, "@rollcall"), { recursive: true });
  for (const name of readdirSync(modules)) {
    if (name !== "rollcall" && name !== "@rollcall") symlinkSync(join(modules, name), join(own, name));
  }
  // Its own sources, as npm links them.
  symlinkSync(root, join(own, "rollcall"));
  for (const name of readdirSync(join(root, "packages"))) {
    symlinkSync(join(root, "packages", name), join(own, "@rollcall", name));
  }
}

const MOST = 256 * 1024 * 1024;

function git(...words: readonly string[]): Buffer {
  const options = { cwd: PACKAGE_ROOT, maxBuffer: MOST, stdio: ["ignore", "pipe", "ignore"] as const };
  return execFileSync("git", words, { ...options, stdio: [...options.stdio] });
}
