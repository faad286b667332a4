/**
 * Tests whether an environment can be created in workerd: its module is bundled as for a Worker, started in workerd
 * alone and without bindings, and creates an instance there. No hook is called.
 */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { convertV4MiniflareOptions, LogLevel, MiniflareCoreError } from "miniflare";
import * as z from "zod";
import type { EnvironmentPackage } from "./environment-package.ts";
import { quietMiniflare, readWorkerOptions, StderrLog, startFailure } from "./miniflare.ts";
import { BARE_IMPORT, environmentExports, PACKAGE_ROOT } from "./package-root.ts";
import { refuseImports } from "./refused-imports.ts";

export interface Tried {
  /** Why it cannot be created there, with the position in the author's file; null if it can. */
  readonly refused: string | null;
  /** The size of the module and its imports, minified and gzipped. */
  readonly bytes: number;
}

/** `args`: valid arguments of the environment; absent if no instance should be created. */
export async function tryInWorkerd({ entry }: EnvironmentPackage, args?: unknown): Promise<Tried> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "rollcall-try-")));
  try {
    const bundle = join(folder, "index.js");
    const main = join(folder, "main.ts");
    writeFileSync(main, mainModule(entry));
    await bundleAlone(main, bundle);
    const bytes = gzipSync(readFileSync(bundle)).length;
    return { refused: await startAlone(folder, bundle, args), bytes };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function mainModule(entry: string): string {
  return [
    `import { loadEnvironment } from ${JSON.stringify(entry)};`,
    "const make = async (request) => loadEnvironment.load(await request.json());",
    'const said = (error) => "Uncaught " + (error?.stack ?? error);',
    'const fetch = (request) => make(request).then(() => "", said).then((text) => new Response(text));',
    "export default { fetch };",
    "",
  ].join("\n");
}

async function bundleAlone(main: string, outfile: string): Promise<void> {
  await build({
    absWorkingDir: process.cwd(),
    ...{ entryPoints: [main], outfile, bundle: true, minify: true, keepNames: true },
    ...{ format: "esm", target: "es2024", sourcemap: true, logLevel: "silent" },
    conditions: ["workerd", "worker", "browser"],
    plugins: [refuseImports, ownCopies],
  });
}

/** The same as in bundle.ts, except that `process` is workerd's. */
const ownCopies: Plugin = {
  name: "own copies of this package and zod",
  setup({ onResolve }) {
    const entries = environmentExports();
    onResolve({ filter: BARE_IMPORT }, ({ path }) => {
      const entry = entries.get(path);
      return entry === undefined ? undefined : { path: entry };
    });
    onResolve({ filter: /^zod(\/|$)/ }, ({ path }) => {
      return { path: fileURLToPath(import.meta.resolve(path)) };
    });
    onResolve({ filter: /^(node:)?process$/ }, () => ({ path: "node:process", external: true }));
  },
};

const Compatibility = z.object({ compatibilityDate: z.string(), compatibilityFlags: z.array(z.string()) });

async function startAlone(folder: string, bundle: string, args: unknown): Promise<string | null> {
  const options = await readWorkerOptions(PACKAGE_ROOT);
  const miniflare = quietMiniflare(
    convertV4MiniflareOptions({
      ...Compatibility.parse(options),
      modules: [{ type: "ESModule", path: bundle }],
      ...{ modulesRoot: folder, cf: false, log: new StderrLog(LogLevel.NONE) },
      handleStructuredLogs: () => {
        // The same words come back in the error.
      },
    }),
  );
  try {
    await miniflare.ready;
    if (args === undefined) return null;
    const body = JSON.stringify(args);
    const reply = await miniflare.dispatchFetch("http://environment/", { method: "POST", body });
    return startFailure(await reply.text(), bundle);
  } catch (error) {
    const said = error instanceof MiniflareCoreError ? startFailure(error.message, bundle) : null;
    if (said === null) throw error;
    return said;
  } finally {
    await Promise.allSettled([miniflare.dispose()]);
  }
}
