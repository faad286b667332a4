/** How a program's end ends its rollout: its result file, else the last part of its stdout, else an error. */
import { lstat, readFile } from "node:fs/promises";
import { RolloutFinish, type RolloutFinishInput } from "../../agents/wire.ts";
import { LIMITS } from "../../contract/limits.ts";
import { findLost } from "../../contract/lost-json.ts";
import type { ProgramEnd } from "./program.ts";

/** The last lines of stderr that are part of an error. */
const STDERR_LINES = 20;
const BAD_RESULT = "BadResult";
const KEY_SHOWN = "[key]";

/** `key`: the rollout's, which is replaced wherever the output has it. */
export async function finishOf(end: ProgramEnd, resultFile: string, key: string): Promise<RolloutFinishInput> {
  const withoutKey = (text: string) => text.replaceAll(key, KEY_SHOWN);
  if (end.code !== 0) return exitError({ ...end, stderr: withoutKey(end.stderr) });
  const result = await readResult(resultFile);
  if (result !== null) return result;
  const answer = withoutKey(end.stdout).trim();
  return answer === "" ? {} : { answer };
}

/** The rollout failed because its result cannot be used. */
export function badResult(why: string): RolloutFinishInput {
  return agentError(BAD_RESULT, `the result file: ${why}`);
}

export function isBadResult({ error }: RolloutFinishInput): boolean {
  return error?.error === BAD_RESULT;
}

function exitError({ code, signal, stderr }: ProgramEnd): RolloutFinishInput {
  const how = code === null ? `ended by ${signal}` : `exit code ${code}`;
  const lines = stderr.trimEnd().split("\n").slice(-STDERR_LINES).join("\n");
  const room = LIMITS.errorCharacters - how.length - 1;
  const last = lines.slice(-room);
  return agentError(code === null ? "Signal" : "ExitCode", last === "" ? how : `${how}\n${last}`);
}

function agentError(error: string, message: string): RolloutFinishInput {
  return { error: { kind: "agent", error, message: message.slice(0, LIMITS.errorCharacters).toWellFormed() } };
}

/** Null if the program wrote none. */
async function readResult(file: string): Promise<RolloutFinishInput | null> {
  try {
    const found = await lstat(file);
    if (!found.isFile()) return badResult("is not a regular file");
    const most = LIMITS.requestBodyBytes;
    if (found.size > most) return badResult(`has ${found.size} bytes; the maximum is ${most}`);
    return resultOf(await readFile(file, "utf8"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    return error.code === "ENOENT" ? null : badResult(error.message);
  }
}

function resultOf(text: string): RolloutFinishInput {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return badResult(`is not JSON: ${error.message}`);
    throw error;
  }
  const lost = findLost(text, value);
  if (lost !== null) return badResult(lost.message);
  const parsed = RolloutFinish.safeParse(value);
  if (parsed.success) return value as RolloutFinishInput;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") ?? "";
  return badResult(field === "" ? `${issue?.message}` : `${field}: ${issue?.message}`);
}
