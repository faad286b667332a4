/**
 * An environment's module, loaded into this process. It is bundled first, as it is for the Worker: Node strips no types
 * inside node_modules. `rollcall` and `zod` are this program's own copies, whatever the package has beside it, so that
 * its classes and schemas are those of the core that plays it.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, formatMessages, type Plugin } from "esbuild";
import * as z from "zod";
import type { EnvironmentLoader } from "../core/environments/define-environment.ts";
import { type EnvironmentPackage, NoEnvironmentPackage } from "./environment-package.ts";

export interface EnvironmentModule {
  readonly loadEnvironment: EnvironmentLoader<z.ZodObject>;
  /** What else the module exports. */
  readonly exports: Readonly<Record<string, unknown>>;
}

/** Throws NoEnvironmentPackage when the module does not bundle, throws while it loads, or is no environment. */
export async function loadEnvironmentModule(from: EnvironmentPackage): Promise<EnvironmentModule> {
  const loaded = await load(from.entry);
  const loader = loaded["loadEnvironment"];
  if (!isLoader(loader)) {
    throw new NoEnvironmentPackage(
      `${from.entry} must export loadEnvironment, made with defineEnvironment`,
    );
  }
  return { loadEnvironment: loader, exports: loaded };
}

/** What the module exports. The bundle is gone again when it has been read. */
async function load(entry: string): Promise<Record<string, unknown>> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "rollcall-environment-")));
  const file = join(folder, "environment.mjs");
  try {
    await bundle(entry, file);
    return await importBundled(entry, file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function bundle(entry: string, outfile: string): Promise<void> {
  // The failure is told once, in our own words; it has the same messages.
  await build({
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
    throw new NoEnvironmentPackage(await readable(entry, thrown), { cause: thrown });
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

async function readable(entry: string, thrown: unknown): Promise<string> {
  const failure = BuildFailure.safeParse(thrown);
  const why = failure.success
    ? (await formatMessages(failure.data.errors, { kind: "error" })).join("\n").trim()
    : String(thrown);
  return `${entry} cannot be loaded:\n${why}`;
}

async function importBundled(entry: string, file: string): Promise<Record<string, unknown>> {
  // The stack of an error in a hook then names the author's file.
  process.setSourceMapsEnabled(true);
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const why = error instanceof Error ? ownStack(error) : String(error);
    throw new NoEnvironmentPackage(`${entry} throws while it is loaded: ${why}`, { cause: error });
  }
}

/** The message, and the author's part of the stack: it ends where Node ran the module for us. */
function ownStack({ message, stack = message }: Error): string {
  const lines = stack.split("\n");
  const ours = lines.findIndex((line) =>
    /^\s+at .*\bnode:internal\/(modules|process)\//.test(line),
  );
  return lines.slice(0, ours < 0 ? undefined : ours).join("\n");
}

function isLoader(value: unknown): value is EnvironmentLoader<z.ZodObject> {
  return typeof value === "function" && "load" in value && "args" in value && "needs" in value;
}
