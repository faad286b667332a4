/** Checks the command line of an agent's program before anything is leased. */
import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, join, resolve } from "node:path";
import { usageError } from "../exit.ts";
import { ROLLOUT_FILES } from "./surroundings.ts";

export interface ProgramCommand {
  readonly command: readonly string[];
  /** Absolute; null: the folder of each rollout. */
  readonly cwd: string | null;
}

/**
 * The program's words after `--`. Without `--cwd` the program runs in another folder than this command, so words that
 * are relative paths of files here become absolute. Throws a usage error if the program does not exist or is not executable.
 */
export function programCommand(words: readonly string[], given: string | undefined, here: string): ProgramCommand {
  const [file] = words;
  if (file === undefined || file === "") throw usageError("a program is required after --");
  const cwd = given === undefined ? null : resolve(here, given);
  if (cwd !== null && !isKind(cwd, "isDirectory")) throw usageError(`--cwd: ${cwd} is not a folder`, "cwd");
  const command = cwd === null ? words.map((word, at) => absolutePath(word, at, here)) : words;
  refuseMissing(file, cwd ?? here);
  return { command, cwd };
}

function absolutePath(word: string, at: number, here: string): string {
  // The first word without a slash is looked up on PATH; the rollout's own files are in its folder.
  if (at === 0 ? !word.includes("/") : ROLLOUT_FILES.includes(basename(word))) return word;
  const path = resolve(here, word);
  return isKind(path, "isFile") ? path : word;
}

function refuseMissing(file: string, folder: string): void {
  if (file.includes("/")) {
    if (!isProgram(resolve(folder, file))) throw usageError(`${file}: not found or not executable`);
    return;
  }
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  if (!folders.some((on) => isProgram(join(on, file)))) throw usageError(`${file}: not found on PATH`);
}

function isProgram(path: string): boolean {
  if (!isKind(path, "isFile")) return false;
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isKind(path: string, kind: "isFile" | "isDirectory"): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.[kind]() ?? false;
  } catch {
    // The text is not a path, or a part of the path is not a folder.
    return false;
  }
}
