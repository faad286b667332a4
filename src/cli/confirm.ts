/** Asking a person whether what cannot be undone is meant. */
import { createInterface } from "node:readline/promises";
import { CommandError, EXIT } from "./exit.ts";

/** Whether there is a terminal to ask on. */
export function isAsking(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** The line that is typed, without the blanks around it. Rejects when `signal` is aborted. */
export async function askAloud(question: string, signal: AbortSignal): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await prompt.question(question, { signal })).trim();
  } finally {
    prompt.close();
  }
}

export function notConfirmed(): CommandError {
  const message = "nothing was deleted";
  return new CommandError(EXIT.bad, { code: "not_confirmed", message, type: "invalid_request_error" });
}
