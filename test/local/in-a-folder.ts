/** Runs a program in a folder like a person at a terminal: without the environment that the test runner and npm set. */
import { type ChildProcess, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const NOT_PASSED_ON = /^(npm_|VITEST|NODE_ENV$|TEST$|FORCE_COLOR$|OPENAI_|ROLLCALL_)/;

/** This process's environment variables without those of the test runner and npm; without colours. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1" };
  for (const name of Object.keys(environment)) {
    if (NOT_PASSED_ON.test(name)) delete environment[name];
  }
  return environment;
}

export function runIn(
  folder: string,
  command: readonly [string, ...string[]],
  env: Readonly<Record<string, string>> = {},
  onStart: (child: ChildProcess) => void = () => undefined,
): Promise<Outcome> {
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...plainEnvironment(), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    onStart(child);
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (part) => {
      stdout += part;
    });
    child.stderr.on("data", (part) => {
      stderr += part;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** Its stdout. Throws with all of its output if it does not exit with 0. */
export async function succeedIn(...call: Parameters<typeof runIn>): Promise<string> {
  const { code, stdout, stderr } = await runIn(...call);
  if (code === 0) return stdout;
  throw new Error(`${call[1].join(" ")} in ${call[0]} exits ${code}:\n${stdout}\n${stderr}`);
}

/** Copies node_modules, with links if possible, since npm replaces files and never writes into them. */
export async function copyPackages(from: string, to: string): Promise<void> {
  const copy = (how: string) => runIn(from, ["cp", how, "node_modules", join(to, "node_modules")]);
  const { code } = await copy("-RPl");
  if (code === 0) return;
  // Another file system, or a cp without this option.
  await rm(join(to, "node_modules"), { recursive: true, force: true });
  await succeedIn(from, ["cp", "-RP", "node_modules", join(to, "node_modules")]);
}

/** The same, but as packages that nothing depends on yet: without links, and without npm's record of dependencies. */
export async function unpackedPackages(from: string, to: string): Promise<void> {
  await copyPackages(from, to);
  const packages = join(to, "node_modules");
  await succeedIn(packages, ["find", ".", "-maxdepth", "1", "-type", "l", "-delete"]);
  await rm(join(packages, ".package-lock.json"), { force: true });
}
