/** How measurements of a real account are judged: from raw numbers of each kind to a verdict. */
import { expect, test } from "vitest";
import { type Bench, FULL } from "./bench.ts";
import { FORCED_DELETE, quantile, type Verdict, WAVES } from "./questions.ts";

const QUESTIONS = new Map([...WAVES.flat(), FORCED_DELETE].map((question) => [question.id, question]));
/** A judgement needs only the sizes. */
const BENCH = { sizes: FULL } as Bench;

const error = (message: string, more: object = {}) => ({
  ...{ name: "Error", message, retryable: false, overloaded: false },
  ...more,
});
const reply = (ms: number, status: number) => ({ ms, value: { status, bytes: 8 }, error: null });
const broken = (ms: number) => ({ ms, value: null, error: error("Network connection lost.") });
const seventh = (ended_before: number) => ({ ms: 50, error: null, held_ms: 6000, ended_before, failed: 0 });
const TOO_LARGE = error("Serialized RPC arguments or return values are limited to 32MiB, but the size was: 34603028.");
const run = { status: "completed", scored: 60, failed: {}, seconds: 90 };
const cost = { run, rollouts: 60, expected_gb_s: 77, dollars_per_1000: 0.05 };
const billed = (gb_s: number) => ({ gb_s, requests: 900, rows_written: 1800, rows_read: 9000 });

const CASES: readonly (readonly [id: string, raw: unknown, verdict: Verdict])[] = [
  ["silence", { short: reply(90_000, 200), long: reply(125_000, 524), peer_is_worker: false }, "agrees"],
  ["silence", { short: reply(90_000, 200), long: reply(150_000, 200), peer_is_worker: false }, "stricter"],
  ["silence", { short: reply(90_000, 200), long: reply(150_000, 200), peer_is_worker: true }, "undecided"],
  ["silence", { short: reply(60_000, 524), long: reply(60_000, 524), peer_is_worker: false }, "differs"],
  ["stream", reply(300_000, 200), "agrees"],
  ["stream", broken(125_000), "differs"],
  ["stream", reply(100_000, 200), "differs"],
  ["seventh-streaming", seventh(0), "stricter"],
  ["seventh-waiting", seventh(1), "agrees"],
  ["seventh-waiting", { ...seventh(1), failed: 2 }, "differs"],
  ["alarms", { late_ms: [10, 900, 59_000] }, "agrees"],
  ["alarms", { late_ms: [10, 61_000] }, "differs"],
  ["alarms", { late_ms: [10, null] }, "differs"],
  ["facet", { declared: true, counts: [1, 2], tables_in_host: 0 }, "agrees"],
  ["facet", { declared: false, counts: [1, 2], tables_in_host: 0 }, "differs"],
  ["sql-run", { ...run, scored: 3 }, "differs"],
  [
    "d1-atomic",
    { api: { error: "no such table", table_left: false }, batch: { error: error("no such table"), rows_left: 0 } },
    "agrees",
  ],
  [
    "d1-atomic",
    { api: { error: "no such table", table_left: true }, batch: { error: error("no such table"), rows_left: 0 } },
    "differs",
  ],
  ["queue", { sent: 3, took_ms: [300, 900, 5000] }, "agrees"],
  ["queue", { sent: 3, took_ms: [300, 900] }, "differs"],
  [
    "multipart",
    { equal: { bytes: 5, stored: 4, error: null }, unequal: { bytes: 5, stored: 5, error: null } },
    "differs",
  ],
  [
    "body",
    [
      { mb: 95, status: 200, text: "" },
      { mb: 105, status: 413, text: "" },
    ],
    "agrees",
  ],
  [
    "rpc-value",
    { below: { mib: 31, argument: null, reply: null }, above: { mib: 33, argument: TOO_LARGE, reply: TOO_LARGE } },
    "agrees",
  ],
  [
    "rpc-value",
    { below: { mib: 31, argument: null, reply: null }, above: { mib: 33, argument: null, reply: TOO_LARGE } },
    "differs",
  ],
  [
    "memory",
    { ms: 9, value: null, error: error("Durable Object's isolate exceeded its memory limit and was reset.") },
    "agrees",
  ],
  ["memory", { ms: 9, value: null, error: error("an unknown error text") }, "differs"],
  ["memory", { ms: 9, value: null, error: error("another text", { overloaded: true }) }, "agrees"],
  ["d1-overload", [null, error("D1_ERROR: D1 DB is overloaded. Requests queued for too long.")], "agrees"],
  ["d1-overload", [null, error("D1_ERROR: too busy")], "differs"],
  ["code-updated", error("Durable Object reset because its code was updated."), "agrees"],
  ["error-texts", { "a row over 2 MB": error("string or blob too big: SQLITE_TOOBIG") }, "agrees"],
  ["error-texts", { "a row over 2 MB": error("internal error; reference = abc") }, "differs"],
  ["full-bucket", { status: 409, code: 10008, message: "not empty" }, "agrees"],
  ["full-bucket", { status: 409, code: 10009, message: "not empty" }, "differs"],
  ["cost", { ...cost, billed: billed(40) }, "agrees"],
  ["cost", { ...cost, billed: billed(400) }, "differs"],
  ["cost", { ...cost, billed: null, dollars_per_1000: null }, "undecided"],
  ["forced-delete", { worker: null, queue: null }, "agrees"],
  ["forced-delete", { worker: "it consumes a queue", queue: null }, "differs"],
];

test("each kind of measurement gets its verdict", () => {
  for (const [id, raw, verdict] of CASES) {
    expect([id, QUESTIONS.get(id)?.judge(raw, BENCH).verdict, JSON.stringify(raw)]).toEqual([
      id,
      verdict,
      JSON.stringify(raw),
    ]);
  }
  expect([...new Set(CASES.map(([id]) => id))].sort()).toEqual([...QUESTIONS.keys()].sort());
});

test("the sizes of a real account are on both sides of each limit", () => {
  const { silentS, bodiesMb, valuesMib } = FULL;
  expect([silentS[0] < 100, silentS[1] > 125, bodiesMb[0] < 100, bodiesMb[1] > 100]).toEqual([true, true, true, true]);
  expect([valuesMib[0] < 32, valuesMib[1] > 32]).toEqual([true, true]);
});

test("a quantile is one of the numbers, and not a number without any", () => {
  expect([quantile([3, 1, 2], 0.5), quantile([3, 1, 2], 1), quantile([], 0.5)]).toEqual([2, 3, Number.NaN]);
});
