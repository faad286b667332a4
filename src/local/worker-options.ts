/**
 * wrangler.toml as Miniflare's options, made by wrangler itself. Wrangler takes more than a second to load, so what it
 * made is kept beside the bundle and made again only when the file, or wrangler, is another one.
 */
import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { unstable_getMiniflareWorkerOptions } from "wrangler";

export type WorkerOptions = ReturnType<typeof unstable_getMiniflareWorkerOptions>["workerOptions"];

interface Kept {
  readonly hash: string;
  readonly options: WorkerOptions;
}

/** `root` has the wrangler.toml, `folder` the bundle. */
export async function readWorkerOptions(root: string, folder: string): Promise<WorkerOptions> {
  const config = join(root, "wrangler.toml");
  const hash = hashOf(config);
  const kept = keptIn(folder);
  if (kept?.hash === hash) return kept.options;
  // Wrangler reports what it reads on stdout, which belongs to the command.
  process.env["WRANGLER_LOG"] ??= "error";
  const { unstable_getMiniflareWorkerOptions: read } = await import("wrangler");
  const { workerOptions: options } = read(config);
  keep(folder, { hash, options });
  return options;
}

function hashOf(config: string): string {
  const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
  return createHash("sha256").update(readFileSync(config)).update(readFileSync(wrangler)).digest("hex");
}

function fileIn(folder: string): string {
  return join(folder, "worker-options.json");
}

/** Null where there is none that can be read. */
function keptIn(folder: string): Kept | null {
  try {
    return JSON.parse(readFileSync(fileIn(folder), "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError || isFileError(error)) return null;
    throw error;
  }
}

/** In a folder that cannot be written they are made anew each time. */
function keep(folder: string, kept: Kept): void {
  const draft = `${fileIn(folder)}.${process.pid}`;
  try {
    writeFileSync(draft, JSON.stringify(kept));
    renameSync(draft, fileIn(folder));
  } catch (error) {
    if (!isFileError(error)) throw error;
  }
}

function isFileError(error: unknown): boolean {
  return error instanceof Error && "code" in error;
}
