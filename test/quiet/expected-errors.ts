import { FAULTS } from "../fakes/platform-fault-texts.ts";

/**
 * The log lines of level error that tests provoke on purpose, by message, with a pattern for their error. Any other is
 * printed, and fails the file during which it is logged.
 */
const EXPECTED: Readonly<Record<string, RegExp>> = {
  "archive of the ledger": /killed|the store is away|the answer is lost/,
  "a rollout's database does not answer": /is overloaded/,
  "audit log": /away/,
  "a change of settings could not be noted": /away/,
  "a run could not be repaired": /the process was killed/,
  "batch in a format": /is missing/,
  "billing of the organisation": /killed|the store is away|the answer is lost/,
  "dead letter": /a message of kind \w+/,
  deletion: /cut off (before it deletes|after it has deleted)/,
  "deliveries of a webhook are dropped": /too many wait/,
  "the fleet was not notified of ends of calls": /gone/,
  "hours of use": /killed|the store is away|the answer is lost/,
  "judging failed": /the run is away|more than \d+ subrequests in one invocation/,
  "message failed":
    /^Error\("(trajectory of ro_\S+ is missing|cut|killed|the run is away|the sender is gone)|has no object to run it/,
  "no lease: there is no answer": /lost by the test/,
  offer: /the trainer answered/,
  "readiness: the bucket does not answer": /the store is away|no answer within 1 ms/,
  "readiness: the database does not answer": /the store is away/,
  "releases for the audit log": /killed/,
  "request failed": /the process ends here|internal error; reference = abc/,
  "requests are not counted": /overloaded/,
  "rollout cannot be ended": /killed here/,
  "rollout ended": /no such thing|^RefusedValueError/,
  "rollout waits for the platform": /the store is away|no such thing|the run is away|^RefusedValueError|Failed query/,
  "rollouts do not answer": /it is broken|does not implement the method|internal error; reference = abc/,
  "row of the run": /Failed query/,
  "run does not answer its trainer": /gone/,
  "samples could not be made": /^RangeError/,
  settling: /killed|the answer is lost|the books are away/,
  "the secret of a webhook does not open": /sealed under a ROLLCALL_SECRET/,
  training: /the store is away/,
  "trigger began no run": /killed|the store is away|no/,
  "value not sealed anew": /sealed under a ROLLCALL_SECRET|^OperationError/,
};

/** Only tests abort all objects at once. Any work that was in progress then fails. */
const ABORTED = /Application called abortAllDurableObjects/;

/** test/kernel/run/platform-faults.test.ts provokes them at every call. */
const PLATFORM_FAULTS: readonly string[] = Object.values(FAULTS).flat();

/** The parts of a log line; null for any other line. */
interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly error?: { readonly message: string };
}

function logLine(text: unknown): LogLine | null {
  if (typeof text !== "string" || !text.startsWith('{"time":')) return null;
  return JSON.parse(text);
}

/** "quiet": a test expects it, or it reports no failure. "unexpected": a failure that no test provokes on purpose. */
export function judge(text: unknown): "quiet" | "unexpected" | "other" {
  const line = logLine(text);
  if (line === null) return "other";
  if (line.level !== "error") return "quiet";
  const error = line.error?.message ?? "";
  if (PLATFORM_FAULTS.some((text) => error.includes(text))) return "quiet";
  return ABORTED.test(error) || EXPECTED[line.message]?.test(error) ? "quiet" : "unexpected";
}
