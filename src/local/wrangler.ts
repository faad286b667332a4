/** Runs the wrangler that this package pins, in a process of its own and without questions. */
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";

interface Call {
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Of the output of a deploy or a list; more than that is an error. */
const MOST_OUTPUT = 16 * 1024 * 1024;

/** The text on stdout. Throws an error with the text of wrangler, or the signal's reason. */
export async function callWrangler(words: readonly string[], { folder, env = {}, signal }: Call): Promise<string> {
  const wrangler = createRequire(import.meta.url).resolve("wrangler/package.json");
  const script = join(wrangler, "..", "bin", "wrangler.js");
  const around = {
    ...process.env,
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_WRITE_LOGS: "false",
    // Reading a configuration in this process silences wrangler here.
    WRANGLER_LOG: "log",
    // Else wrangler would add it to the name of the Worker.
    CLOUDFLARE_ENV: "",
    FORCE_COLOR: "0",
    // Compiles wrangler's own code once, not for every call.
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(tmpdir(), "node-compile-cache"),
    ...env,
  };
  try {
    const options = { cwd: folder, env: around, signal, maxBuffer: MOST_OUTPUT };
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...words], options);
    return stdout;
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof Error)) throw error;
    const said = ["stdout", "stderr"].map((name) => Reflect.get(error, name)).join("\n");
    throw new Error(stripVTControlCharacters(said).trim() || error.message, { cause: error });
  }
}
