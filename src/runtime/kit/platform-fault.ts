/**
 * What the platform below us says when an object's storage is not to be had, told by the words of its errors: it offers
 * nothing else. An object whose file is damaged does not open, and then even those words stay behind in its process.
 */

const DAMAGED = /SQLITE_(CORRUPT|NOTADB)/;
/** What a caller hears of an object that failed outside of our code. */
const UNOPENED = /(^|: )internal error; reference = /;

/** The object's storage cannot be read, as far as one error can say; trouble that passes is said to be such. */
export function isUnreadable(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || passes(thrown)) return false;
  const { message, cause } = thrown;
  return DAMAGED.test(message) || UNOPENED.test(message) || isUnreadable(cause);
}

function passes(thrown: Error): boolean {
  const { retryable, overloaded } = thrown as { retryable?: unknown; overloaded?: unknown };
  return retryable === true || overloaded === true;
}

/** Its object does not open: what is in D1 is all there is. */
export function damagedMessage(id: string): string {
  return `the object of ${id} does not open: its storage is damaged`;
}

export function goneMessage(id: string): string {
  return `the object of ${id} holds nothing: its storage was deleted, and with it the rollouts of this run`;
}
