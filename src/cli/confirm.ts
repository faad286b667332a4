/** Asks the user to confirm an action that cannot be undone. */
import { createInterface } from "node:readline/promises";
import { CommandError, EXIT } from "./exit.ts";

/** Whether there is a terminal to ask on. */
export function isAsking(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** The typed line, trimmed. Rejects when `signal` is aborted. */
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
