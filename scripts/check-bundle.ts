/**
 * Builds what a deployment would upload and fails when it grew past its limit. The limit is what a person agreed to:
 * raise it in the commit that needs it, and say there what the bytes buy.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const ROOT = resolve(import.meta.dirname, "..");
// Naming `z.core` or `z.locales` as a value drags in every zod locale, which costs 55 kB of it.
// Of it a third is the openai SDK, and an eighth re2js: patterns that no tenant's text can hang an isolate with.
// Training came with 45 kB: the loop, its trainer's object and routes, msgpack. Counting what SQL, schemas, patterns and
// replies may cost before they are let loose came with 15. Asking an engine what can be proven of its logprobs, one order
// for what evals play and training holds out, and figures apart by member came with 10.
// Units, words, functions and sets of real numbers in answers of mathematics came with 11.
// Stripe's library came with 33: what it signed is checked by its own code, and its errors are told apart. Prices, the
// ledger, budgets and payments came with 10.
// Caps that hold while a run goes on, usage, metrics and traces came with 15.
// Fleets and the drivers of engines of several ages came with 26. Triggers, webhooks and the library that signs them came
// with 18, and batches in the shapes of other trainers with 8.
// The page's API came with 22: lists over a run's rollouts by a filter, a rollout a piece at a time, sessions, links to
// reports. The page itself is no part of the Worker.
// Answers among money, headings and tags, choices as models write them and typeset numbers came with 5.
// Leaving a model's thoughts out of its answer, and reading verdicts that are nearly JSON, came with 8.
// Replies, refusals and full contexts in the words of many servers came with 15, exact numbers and MCP in all its forms with 15.
// Numbers that prose tells, in the typography of many countries, and verdicts and choices in more forms came with 5.
// Refusals in the shapes of web frameworks and gateways, and streams that fail in the middle, came with 4.
// Turns of computing, and places shared by organisation, came with 1; holds for lost calls and their release with 1;
// rights that end with their giver, and comparisons that say what they can tell apart, with 1.
// Telling what a sentence denies, doubts or says of others from the choice and the verdict that it gives came with 4.
// Clauses beside an answer, denied formulas, bounds and sizes of numbers came with 5.
const LIMIT_KB = 680;

const outdir = mkdtempSync(join(tmpdir(), "rollcall-bundle-"));
try {
  execFileSync(join(ROOT, "node_modules/.bin/wrangler"), ["deploy", "--dry-run", "--outdir", outdir], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const kilobytes = gzipSync(readFileSync(join(outdir, "index.js"))).length / 1000;
  process.stdout.write(`${kilobytes.toFixed(1)} kB gzipped, limit ${LIMIT_KB} kB\n`);
  process.exitCode = kilobytes <= LIMIT_KB ? 0 : 1;
} finally {
  rmSync(outdir, { recursive: true });
}
