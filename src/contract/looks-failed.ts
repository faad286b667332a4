const FAILED =
  /^\s*(?:\{\s*"error"\s*:|(?:\w+ )?\w*(?:error|exception)(?::|\s|$)|traceback \(|there is no tool named |the call names no tool|bad arguments for )/i;
/** What of a result is looked at. */
const JUDGED_CHARACTERS = 200;

/**
 * Whether a tool's result reads like an error. A guess, and nothing counts by it: what is stored of a failed call is the
 * text that the model was given.
 */
export function looksFailed(result: string): boolean {
  return FAILED.test(result.slice(0, JUDGED_CHARACTERS));
}
