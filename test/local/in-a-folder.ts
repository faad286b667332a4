/** Runs a program in a folder as a person at a terminal would: without what the test runner and npm put around a test. */
import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const NOT_PASSED_ON = /^(npm_|VITEST|NODE_ENV$|TEST$|FORCE_COLOR$|OPENAI_|ROLLCALL_)/;

/** This process's environment variables, less those; without colours. */
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
): Promise<Outcome> {
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...plainEnvironment(), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
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

/** Its stdout. Throws with everything it said when it does not exit 0. */
export async function succeedIn(...call: Parameters<typeof runIn>): Promise<string> {
  const { code, stdout, stderr } = await runIn(...call);
  if (code === 0) return stdout;
  throw new Error(`${call[1].join(" ")} in ${call[0]} exits ${code}:\n${stdout}\n${stderr}`);
}

/** The node_modules of one folder for another; linked where that works, since npm replaces files and writes into none. */
export async function copyPackages(from: string, to: string): Promise<void> {
  const copy = (how: string) => runIn(from, ["cp", how, "node_modules", join(to, "node_modules")]);
  const { code } = await copy("-RPl");
  if (code === 0) return;
  // Another file system, or a cp that cannot.
  await rm(join(to, "node_modules"), { recursive: true, force: true });
  await succeedIn(from, ["cp", "-RP", "node_modules", join(to, "node_modules")]);
}

/** The same as packages that nothing asked for yet: without links, and without npm's note of why each is there. */
export async function unpackedPackages(from: string, to: string): Promise<void> {
  await copyPackages(from, to);
  const packages = join(to, "node_modules");
  await succeedIn(packages, ["find", ".", "-maxdepth", "1", "-type", "l", "-delete"]);
  await rm(join(packages, ".package-lock.json"), { force: true });
}
