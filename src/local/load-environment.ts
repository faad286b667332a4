/**
 * Loads an environment's module into this process. It is bundled first, as it is for the Worker, because Node does not
 * strip types inside node_modules. `rollcall` and `zod` resolve to this program's own copies, even if the package has
 * others, so that its classes and schemas are those of the core that plays it.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build, formatMessages, type Plugin } from "esbuild";
import * as z from "zod";
import { type EnvironmentPackage, NoEnvironmentPackage } from "./environment-package.ts";
import { Requirements } from "./environment-requirements.ts";
import { type EnvironmentModule, importEnvironment } from "./import-environment.ts";
import { BARE_IMPORT, ownImport, PACKAGE_ROOT } from "./package-root.ts";
import { refuseImports } from "./refused-imports.ts";

/** Next to this file; a `.js` file if this file was compiled. */
const PROCESS = join(import.meta.dirname, `import-process${extname(import.meta.filename)}`);
/** The same time that workerd may take to answer. */
const LOADING_MS = 30_000;
/** Folders of this package with code. */
const OWN_CODE = ["src", "dist", "packages", "node_modules"];

/** Throws NoEnvironmentPackage if the module does not bundle, throws while loading, or is not an environment. */
export function loadEnvironmentModule(from: EnvironmentPackage): Promise<EnvironmentModule> {
  return withBundle(from.entry, (file) => importEnvironment(from.entry, file));
}

/**
 * Tries the same in a separate process. A module that computes without end, or exits its process, does not block this
 * process or its signals, and is refused. It has no environment variables, cannot write and cannot start processes.
 * Rejects with the reason of `signal` if it is aborted first.
 */
export async function tryEnvironmentModule(from: EnvironmentPackage, trial: Trial = {}): Promise<void> {
  await withBundle(from.entry, (file) => tryInProcess([from.entry, file], trial));
}

/** What it requires of a run with these arguments, from the same process. */
export async function environmentRequirements(
  from: EnvironmentPackage,
  args: Readonly<Record<string, unknown>>,
  trial: Trial = {},
): Promise<Requirements> {
  return await withBundle(from.entry, async (file) => {
    return Requirements.parse(await tryInProcess([from.entry, file, JSON.stringify(args)], trial));
  });
}

interface Trial {
  readonly ms?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Removes the bundle after it was read. */
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

/** Why the module is refused, or null; and what it requires, as JSON. */
const Answer = z.tuple([z.string().nullable(), z.string()]);
/** The part of the pipe that is kept: the module may write to it too. */
const KEPT_BYTES = 4 * 1024 ** 2;

async function tryInProcess(words: readonly string[], { ms = LOADING_MS, signal }: Trial): Promise<unknown> {
  const [entry = "", file = ""] = words;
  signal?.throwIfAborted();
  const flags = ["--permission", ...readable(file).map((path) => `--allow-fs-read=${path}`)];
  const child = spawn(process.execPath, [...flags, PROCESS, ...words], {
    env: {} as NodeJS.ProcessEnv,
    // Standard output belongs to the command.
    stdio: ["pipe", 2, 2, "pipe"],
  });
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const refuse = (refused: string) => resolve([refused, "null"]);
  const word = randomUUID();
  child.stdin?.once("error", reject).end(word);
  let said = Buffer.alloc(0);
  child.stdio[3]?.on("data", (piece: Buffer) => {
    said = Buffer.concat([said, piece]).subarray(-KEPT_BYTES);
    const answer = answerIn(said.toString(), word);
    if (answer !== null) resolve(answer);
  });
  child.once("error", reject);
  child.once("close", () => refuse(`${entry} ends its process while loading`));
  const seconds = ms / 1000;
  const late = () => refuse(`${entry} computes for more than ${seconds} s while loading`);
  const timer = setTimeout(late, ms);
  const stop = () => reject(signal?.reason);
  signal?.addEventListener("abort", stop);
  try {
    const [refused, required] = Answer.parse(await promise);
    if (refused !== null) throw new NoEnvironmentPackage(refused);
    return JSON.parse(required);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    child.kill("SIGKILL");
  }
}

/** The answer of the process, in a line that starts with the word; null: none yet. */
function answerIn(said: string, word: string): unknown {
  const [, after = ""] = said.split(word);
  const line = after.slice(0, Math.max(0, after.indexOf("\n")));
  return line === "" ? null : JSON.parse(line);
}

/** The bundle, this program's code, and its packages, which npm may put next to it. Not a platform's state. */
function readable(file: string): string[] {
  const own = OWN_CODE.map((name) => join(PACKAGE_ROOT, name)).filter(existsSync);
  const folders = [dirname(file), ...own, installedPackages()].map((folder) => realpathSync(folder) + sep);
  return [...folders, join(PACKAGE_ROOT, "package.json")];
}

/** The outermost node_modules folder that contains zod. */
function installedPackages(): string {
  const zod = realpathSync(fileURLToPath(import.meta.resolve("zod")));
  const [above = ""] = zod.split(`${sep}node_modules${sep}`);
  return join(above, "node_modules");
}

async function bundle(entry: string, outfile: string): Promise<void> {
  // The failure is reported once, with our own text; it contains the same messages.
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
    plugins: [refuseImports, ownCopies],
    // CommonJS packages call `require`, which a module does not have.
    banner: {
      js: 'import { createRequire as rollcallRequire } from "node:module"; const require = rollcallRequire(import.meta.url);',
    },
  }).catch(async (thrown: unknown) => {
    throw new NoEnvironmentPackage(await failureText(entry, thrown), { cause: thrown });
  });
}

const ownCopies: Plugin = {
  name: "own copies of this package and zod",
  setup({ onResolve }) {
    onResolve({ filter: BARE_IMPORT }, ({ path }) => {
      const own = ownImport(path) ?? (/^zod(\/|$)/.test(path) ? path : null);
      return own === null ? undefined : { path: import.meta.resolve(own), external: true };
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
