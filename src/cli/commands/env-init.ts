/** `rollcall env init`: a new environment in a folder of its own, ready to be installed, tested and played. */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import { readCommandLine } from "../command-line.ts";
import { ENV_INIT } from "../commands.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { KINDS, type Kind, PINS, scaffold } from "./scaffold.ts";

export function envInitCommand(argv: readonly string[]): ExitCode {
  const line = readCommandLine(ENV_INIT, argv);
  const term = terminal(line.on("json"));
  const name = line.one("the new environment");
  const kind = KINDS.find((known) => known === line.text("kind")) ?? "single-turn";
  const { id, folder, files } = makeEnvironment(name, kind, process.cwd());
  const next = [`cd ${id} && npm install`, "npm test", "npm run validate"];
  term.print(`Made ${folder}: ${files.join(", ")}\n\nNext:\n  ${next.join("\n  ")}`);
  if (line.on("json")) printJson({ name, kind, folder, files, next });
  return EXIT.good;
}

interface NewEnvironment {
  readonly id: string;
  readonly folder: string;
  /** Their names. */
  readonly files: readonly string[];
}

/** Writes a new package below `parent`. Throws a usage error when it cannot be called so, or something is there already. */
export function makeEnvironment(name: string, kind: Kind, parent: string): NewEnvironment {
  const id = checkedId(name);
  const folder = join(parent, id);
  const there = statSync(folder, { throwIfNoEntry: false });
  if (there !== undefined && !there.isDirectory()) {
    throw usageError(`${folder} is a file: name another, or move it away`, "name");
  }
  if (there !== undefined && readdirSync(folder).length > 0) {
    throw usageError(`${folder} exists and is not empty: name another, or empty it`, "name");
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
      `${JSON.stringify(name)} cannot be a package's name: take up to 64 of a-z, 0-9, ".", "_" and "-", ` +
        "beginning with a letter or a digit",
      "name",
    );
  }
  const why = reasonAgainst(name, id);
  if (why !== null) throw usageError(`${name} ${why}; take another name`, "name");
  return id;
}

function reasonAgainst(name: string, id: string): string | null {
  if (builtinModules.includes(name)) return "is a module of Node";
  if (["node_modules", "favicon.ico"].includes(name)) return "is refused by npm";
  if (name === "rollcall" || name in PINS) return "is a package that the environment needs";
  const own = join(PACKAGE_ROOT, "environments", id, "package.json");
  return existsSync(own) ? "is an environment of Rollcall's own" : null;
}
