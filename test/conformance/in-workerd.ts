/** Runs vectors inside workerd: the drivers are a Worker, the vectors are sent to it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import * as z from "zod";
import type { Verdict } from "./run-vectors.ts";
import type { Vector } from "./vector-file.ts";

const ROOT = join(import.meta.dirname, "../..");
const Verdicts = z.array(z.object({ id: z.string(), kind: z.string(), message: z.string().nullable() }));

export async function runInWorkerd(vectors: readonly Vector[]): Promise<Verdict[]> {
  const options = convertV4MiniflareOptions({
    modules: [{ type: "ESModule", path: "worker.js", contents: await bundle() }],
    compatibilityDate: await compatibilityDate(),
    cf: false,
    log: new Log(LogLevel.NONE),
    // stdout belongs to the command.
    handleStructuredLogs: ({ message }) => process.stderr.write(`${message}\n`),
  });
  const miniflare = new Miniflare(options);
  try {
    const body = JSON.stringify(vectors);
    const response = await miniflare.dispatchFetch("http://conformance/", { method: "POST", body });
    if (!response.ok) throw new Error(`the drivers failed in workerd: ${await response.text()}`);
    return Verdicts.parse(await response.json());
  } finally {
    await miniflare.dispose();
  }
}

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "worker.ts")],
    bundle: true,
    format: "esm",
    target: "es2024",
    write: false,
    logLevel: "silent",
  });
  return outputFiles[0]?.text ?? "";
}

/** The platform's own date, so that the core is tested in the runtime where it runs. */
async function compatibilityDate(): Promise<string> {
  const config = await readFile(join(ROOT, "wrangler.toml"), "utf8");
  const date = /^compatibility_date = "([^"]+)"/m.exec(config)?.[1];
  if (date === undefined) throw new Error("wrangler.toml names no compatibility_date");
  return date;
}
