/**
 * Python packages of a named suite, in a virtual environment that is made once: in the user's cache folder, or in the
 * folder that an environment variable names. A mark file holds the hash of the requirements, so that a change of them
 * installs again.
 */
import { type SpawnOptions, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

type Version = readonly [number, number];
/** The oldest Python for which the pinned packages have builds, unless a suite needs a newer one. */
const OLDEST: Version = [3, 10];
const NAMES = ["python3.11", "python3.12", "python3.13", "python3.10", "python3"];

export interface Venv {
  /** The path of its interpreter. */
  readonly python: string;
  /** The path of a script that it installed. */
  script(name: string): string;
}

/**
 * `variable`: an environment variable with the folder to use instead of the cache. Null if no suitable Python is found,
 * which is reported on stderr. Throws if the packages cannot be installed.
 */
export async function pythonVenv(
  name: string,
  requirements: string,
  variable: string,
  oldest: Version = OLDEST,
): Promise<Venv | null> {
  const folder = process.env[variable] ?? join(cacheFolder(), `${name}-venv`);
  const python = join(folder, "bin/python");
  if (!existsSync(python)) {
    const found = await systemPython(oldest);
    if (found === null) {
      say(`${name}: skipped: no Python ${oldest.join(".")} or newer with venv was found`);
      return null;
    }
    mkdirSync(folder, { recursive: true });
    await run(found, ["-m", "venv", folder], { stdio: ["ignore", 2, 2] });
  }
  const mark = join(folder, "rollcall-requirements.sha256");
  const wanted = createHash("sha256").update(readFileSync(requirements)).digest("hex");
  if (!existsSync(mark) || readFileSync(mark, "utf8") !== wanted) {
    say(`${name}: installing ${requirements} into ${folder}, once`);
    const install = ["-m", "pip", "install", "--progress-bar", "off", "-r", requirements];
    await run(python, install, { stdio: ["ignore", 2, 2] });
    writeFileSync(mark, wanted);
  }
  return { python, script: (script) => join(folder, "bin", script) };
}

/** The program's output. Throws its stderr if it fails. */
export async function run(program: string, argv: readonly string[], options: SpawnOptions = {}): Promise<string> {
  const child = spawn(program, argv, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (part) => {
    stdout += part;
  });
  child.stderr?.on("data", (part) => {
    stderr += part;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0) {
    throw new Error(`${program} ${argv.join(" ")} ended with ${code}:\n${stdout}${stderr}`);
  }
  return stdout;
}

export function cacheFolder(): string {
  return join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "rollcall");
}

async function systemPython(oldest: Version): Promise<string | null> {
  const fits = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${oldest.join(", ")}))`;
  for (const name of NAMES) {
    try {
      await run(name, ["-c", fits]);
      return name;
    } catch {
      // Not there, too old, or without venv: the next one may do.
    }
  }
  return null;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
