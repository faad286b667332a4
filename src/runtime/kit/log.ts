/** The Worker's log: one JSON line per thing an operator may have to look at. What a user must know is in the API. */
import { serializeError } from "../../contract/errors.ts";
import { noteStorage } from "./storage-faults.ts";

/** A failed statement repeats its parameters: the beginning says what went wrong. */
const LONGEST = 500;

export function logError(what: string, about: string, thrown: unknown): void {
  noteStorage(thrown);
  const error = serializeError(thrown).error_chain_repr.slice(0, LONGEST);
  // biome-ignore lint/suspicious/noConsole: the runtime's log is the console, and this is its one door
  console.error(JSON.stringify({ level: "error", what, about, error }));
}

/** Something that went as it should, and that somebody has to hear of. `about` names it by ids. */
export function logNotice(what: string, about: object): void {
  // biome-ignore lint/suspicious/noConsole: the runtime's log is the console, and this is its one door
  console.log(JSON.stringify({ level: "notice", what, ...about }));
}
