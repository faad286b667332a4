/**
 * An environment's module, loaded into this process. It is bundled first, as it is for the Worker: Node strips no types
 * inside node_modules. `rollcall` and `zod` are this program's own copies, whatever the package has beside it, so that
 * its classes and schemas are those of the core that plays it.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { build, formatMessages, type Plugin } from "esbuild";
import * as z from "zod";
import { type EnvironmentPackage, NoEnvironmentPackage } from "./environment-package.ts";
import { type EnvironmentModule, importEnvironment } from "./import-environment.ts";

/** Beside this file, and a `.js` where this file was compiled to one. */
const THREAD = join(import.meta.dirname, `import-thread${extname(import.meta.filename)}`);
/** As long as a workerd may answer nothing. */
const LOADING_MS = 30_000;

/** Throws NoEnvironmentPackage when the module does not bundle, throws while it loads, or is no environment. */
export function loadEnvironmentModule(from: EnvironmentPackage): Promise<EnvironmentModule> {
  return withBundle(from.entry, (file) => importEnvironment(from.entry, file));
}

/**
 * The same in a thread of its own, which ends with it: a module that computes without end, or ends its process, holds up
 * neither this process nor its signals, and is refused. Rejects with the reason of `signal` when that is aborted first.
 */
export function tryEnvironmentModule(from: EnvironmentPackage, { ms = LOADING_MS, signal }: Trial = {}): Promise<void> {
  return withBundle(from.entry, (file) => tryInThread(from.entry, file, ms, signal));
}

interface Trial {
  readonly ms?: number;
  readonly signal?: AbortSignal | undefined;
}

/** The bundle is gone again when it has been read. */
async function withBundle<T>(entry: string, read: (file: string) => Promise<T>): Promise<T> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "rollcall-environment-")));
  const file = join(folder, "environment.mjs");
  try {
    await bundle(entry, file);
    return await read(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function tryInThread(entry: string, file: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const thread = new Worker(THREAD, { workerData: { entry, file } });
  const { promise, resolve, reject } = Promise.withResolvers<string | null>();
  thread.once("message", resolve);
  thread.once("error", reject);
  thread.once("exit", () => resolve(`${entry} ends its process while it is loaded`));
  const seconds = ms / 1000;
  const late = () => resolve(`${entry} computes for more than ${seconds} s while it is loaded`);
  const timer = setTimeout(late, ms);
  const stop = () => reject(signal?.reason);
  signal?.addEventListener("abort", stop);
  try {
    const refused = await promise;
    if (refused !== null) throw new NoEnvironmentPackage(refused);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    await thread.terminate();
  }
}

async function bundle(entry: string, outfile: string): Promise<void> {
  // The failure is told once, in our own words; it has the same messages.
  await build({
    absWorkingDir: process.cwd(),
    entryPoints: [entry],
    bundle: true,
    outfile,
    format: "esm",
    platform: "node",
    target: "node22",
    sourcemap: "inline",
    logLevel: "silent",
    plugins: [ownCopies],
    // Packages in CommonJS call for `require`, which a module does not have.
    banner: {
      js: 'import { createRequire as rollcallRequire } from "node:module"; const require = rollcallRequire(import.meta.url);',
    },
  }).catch(async (thrown: unknown) => {
    throw new NoEnvironmentPackage(await failureText(entry, thrown), { cause: thrown });
  });
}

const ownCopies: Plugin = {
  name: "own copies of rollcall and zod",
  setup({ onResolve }) {
    onResolve({ filter: /^(rollcall|zod)(\/|$)/ }, ({ path }) => {
      return { path: import.meta.resolve(path), external: true };
    });
  },
};

const BuildFailure = z.object({
  errors: z.array(
    z.object({
      text: z.string(),
      location: z
        .object({
          file: z.string(),
          line: z.number(),
          column: z.number(),
          length: z.number(),
          lineText: z.string(),
        })
        .nullable(),
    }),
  ),
});

async function failureText(entry: string, thrown: unknown): Promise<string> {
  const failure = BuildFailure.safeParse(thrown);
  const why = failure.success
    ? (await formatMessages(failure.data.errors, { kind: "error" })).join("\n").trim()
    : String(thrown);
  return `${entry} cannot be loaded:\n${why}`;
}
