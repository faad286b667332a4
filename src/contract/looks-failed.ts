const FAILED =
  /^\s*(?:\{\s*"error"\s*:|(?:\w+ )?\w*(?:error|exception)(?::|\s|$)|traceback \(|there is no tool named |the call names no tool|bad arguments for )/i;
/** What a tool says that was written to be read: "warehouse: no such item", "Lookup failed: …". */
const SAID =
  /^\s*(?:(?:[\w ]{1,40}: )?(?:unknown|invalid|no such|cannot|could not|nothing (?:is|was)) |[\w ]{1,40} (?:failed|timed out|not found)(?::|\.|$))/i;
/** What of a result is looked at. */
const JUDGED_CHARACTERS = 200;

/**
 * Whether a tool's result reads like an error. A guess, for calls of which it was not recorded whether they failed
 * (`tool_failed` of their turn), and where it is counted that is said.
 */
export function looksFailed(result: string): boolean {
  const begin = result.slice(0, JUDGED_CHARACTERS);
  return FAILED.test(begin) || SAID.test(begin);
}
