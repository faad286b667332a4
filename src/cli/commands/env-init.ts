/**
 * Makes a new environment in its own folder, ready to be installed, tested and played. Each kind has its own module and
 * test, in templates/; the other files are the same.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { PACKAGE_ROOT, rollcallName, rollcallSpecifier, rollcallVersion } from "../../local/package-root.ts";
import { usageError } from "../exit.ts";

export const KINDS = ["single-turn", "tool", "stateful"] as const;
export type Kind = (typeof KINDS)[number];

/** The exact versions that this Rollcall is tested with. */
export const PINS = { typescript: "5.9.3", vitest: "5.1.1", zod: "4.6.7" };

interface NewEnvironment {
  readonly id: string;
  readonly folder: string;
  /** The names of the files. */
  readonly files: readonly string[];
}

/** Writes a new package under `parent`. Throws a usage error if the name is not allowed or the folder is not empty. */
export function makeEnvironment(name: string, kind: Kind, parent: string): NewEnvironment {
  const id = checkedId(name);
  const folder = join(parent, id);
  const there = statSync(folder, { throwIfNoEntry: false });
  if (there !== undefined && !there.isDirectory()) {
    throw usageError(`${folder} is a file: choose another folder, or move it away`, "name");
  }
  if (there !== undefined && readdirSync(folder).length > 0) {
    throw usageError(`${folder} exists and is not empty: choose another folder, or empty it`, "name");
  }
  mkdirSync(folder, { recursive: true });
  const files = Object.entries(scaffold(name, kind));
  for (const [file, text] of files) writeFileSync(join(folder, file), text, { flag: "wx" });
  return { id, folder, files: files.map(([file]) => file) };
}

/** The environment's id: the package's name without its scope. */
function checkedId(name: string): string {
  const [, id] = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?([a-z0-9][a-z0-9._-]{0,63})$/.exec(name) ?? [];
  if (id === undefined) {
    throw usageError(
      `${JSON.stringify(name)} is not a valid package name: use up to 64 of a-z, 0-9, ".", "_" and "-", ` +
        "starting with a letter or a digit",
      "name",
    );
  }
  const why = reasonAgainst(name, id);
  if (why !== null) throw usageError(`${name} ${why}; use another name`, "name");
  return id;
}

function reasonAgainst(name: string, id: string): string | null {
  if (builtinModules.includes(name)) return "is a module of Node";
  if (["node_modules", "favicon.ico"].includes(name)) return "is not allowed by npm";
  if (name === rollcallName() || name in PINS) return "is a package that the environment needs";
  const own = join(PACKAGE_ROOT, "environments", id, "package.json");
  return existsSync(own) ? "is a built-in environment of Rollcall" : null;
}

/** Text by file name. */
export function scaffold(name: string, kind: Kind): Record<string, string> {
  return {
    "package.json": json(manifest(name)),
    "environment.ts": template(kind, "environment.ts"),
    "environment.test.ts": template(kind, "environment.test.ts"),
    "README.md": readme(name),
    "tsconfig.json": json(TSCONFIG),
    ".gitignore": ["node_modules/", ".rollcall/", "outputs/", "*.tgz", ""].join("\n"),
  };
}

function manifest(name: string) {
  return {
    name,
    version: "0.1.0",
    type: "module",
    rollcall: { environment: "./environment.ts" },
    files: ["**/*.ts", "!**/*.test.ts", "*.jsonl"],
    // The scripts run the installed package; npx would fetch an unknown package if none is installed.
    scripts: {
      test: "vitest run",
      check: "tsc",
      validate: "rollcall env validate .",
      eval: "rollcall eval .",
    },
    dependencies: { zod: PINS.zod },
    // Users of the package have a Rollcall already, at another path. Optional, because npm would otherwise look for
    // one.
    peerDependencies: { [rollcallName()]: `^${rollcallVersion()}` },
    peerDependenciesMeta: { [rollcallName()]: { optional: true } },
    devDependencies: { [rollcallName()]: rollcallSpecifier(), typescript: PINS.typescript, vitest: PINS.vitest },
  };
}

/** Strict, and only checks types: nothing is compiled, because the platform that runs the environment bundles it. */
const TSCONFIG = {
  compilerOptions: {
    target: "es2024",
    lib: ["es2024"],
    module: "preserve",
    moduleDetection: "force",
    isolatedModules: true,
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    types: [],
  },
  include: ["**/*.ts"],
};

function template(kind: Kind, file: string): string {
  return readFileSync(join(import.meta.dirname, "../templates", kind, file), "utf8");
}

function readme(name: string): string {
  return `# ${name}

Describe the task, the tools and the scoring here.

    npm install
    npm test                            the environment's tests, without a model
    npm run check                       its types
    npm run validate                    plays it with correct, empty, constant and random replies
    npm run eval -- -m MODEL -b https://your-endpoint/v1 -n 20 -r 4

Install Rollcall from the source in package.json. The package \`${rollcallName()}\` on the npm registry is another project: do not install it.

Raise the version in package.json when new rollouts are not comparable with old ones.
`;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
