/** Describes the machine that the numbers were measured on. */
import { readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { openFileLimit } from "../src/local/open-files.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly kernel: string;
  readonly open_file_limit: number;
}

const ROOT = join(import.meta.dirname, "..");
const PACKAGES = ["workerd", "miniflare", "wrangler", "openai"];

export function describeMachine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model ?? "unknown",
    cores: cores.length,
    memory_gb: Math.round(totalmem() / 1e9),
    kernel: release(),
    open_file_limit: openFileLimit(),
  };
}

export function describeVersions(): Record<string, string> {
  const packages = PACKAGES.map((name) => [name, versionIn(join(ROOT, "node_modules", name))]);
  return {
    rollcall: versionIn(ROOT),
    node: process.versions.node,
    ...Object.fromEntries(packages),
  };
}

function versionIn(folder: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return z.object({ version: z.string() }).parse(manifest).version;
}
