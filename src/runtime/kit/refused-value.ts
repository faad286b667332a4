/**
 * Refusals of a value, told from trouble of whoever should take it. A store that is away is asked again for as long as it
 * takes; what is refused for what it is (too large, of no kind that can be stored) would be refused for ever, so whoever
 * owes it has to owe something smaller.
 */
import { isError, messageOf } from "../../contract/errors.ts";

/** A value was refused elsewhere, and its refusal came back as one. */
export class RefusedValueError extends Error {
  override readonly name = "RefusedValueError";
}

/** JSON and clones of what is too deep or too large. */
const KINDS = ["RangeError", "DataCloneError", "RefusedValueError"];
/** SQLite's codes for a value, not for its disk; and calls between objects, which carry 32 MiB. */
const SAYS = /SQLITE_(TOOBIG|MISMATCH|CONSTRAINT|RANGE)|limited to 32 ?MiB/;

/** What is wrong with the value; null where something else is wrong, which may pass. */
export function refusalOf(thrown: unknown): string | null {
  const message = messageOf(thrown);
  const refused = (isError(thrown, Error) && KINDS.includes(thrown.name)) || SAYS.test(message);
  return refused ? message : null;
}

/** What `write` gives, or why it refuses the value: for calls between objects, where errors lose their class. */
export function orRefusal<T>(write: () => T): T | { readonly refused: string } {
  try {
    return write();
  } catch (thrown) {
    const refused = refusalOf(thrown);
    if (refused === null) throw thrown;
    return { refused };
  }
}
