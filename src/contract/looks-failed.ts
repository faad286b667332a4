const FAILED =
  /^\s*(?:\{\s*"error"\s*:|(?:\w+ )?\w*(?:error|exception)(?::|\s|$)|traceback \(|there is no tool named |the call names no tool|bad arguments for )/i;
/** Messages that authors of tools write: "warehouse: no such item", "Lookup failed: …". */
const FAILURE_WORDS =
  /^\s*(?:(?:[\w ]{1,40}: )?(?:unknown|invalid|no such|cannot|could not|nothing (?:is|was)) |[\w ]{1,40} (?:failed|timed out|not found)(?::|\.|$))/i;
/** How much of a result is examined. */
const JUDGED_CHARACTERS = 200;

/**
 * Whether a tool's result reads like an error. This is a guess for calls without a recorded outcome (`tool_failed` of
 * their turn); counts that use it say so.
 */
export function looksFailed(result: string): boolean {
  const begin = result.slice(0, JUDGED_CHARACTERS);
  return FAILED.test(begin) || FAILURE_WORDS.test(begin);
}
