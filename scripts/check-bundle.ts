/**
 * Builds what a deployment uploads, and fails if it is larger than the limit. A person agreed to the limit: raise it in
 * the commit that needs it, and say in the commit message what the bytes are for.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const ROOT = resolve(import.meta.dirname, "..");
// An eighth of the bundle is Stripe's library, which is evaluated only when a payment needs it: without it the Worker is 38
// kB smaller and holds 0.2 MB less at its start. A fourteenth is re2js, whose patterns cannot hang an isolate on a user's
// text. Most of the time at the start is for the schemas of zod. Using `z.core` or `z.locales` as a value would add every
// zod locale, 55 kB.
// What each feature added, in kB:
// - 45: training (the loop, the object and routes of its trainer, msgpack)
// - 15: counting what SQL, schemas, patterns and replies may cost before they run
// - 10: checking what is provable about an engine's logprobs, one order for evals and held-out tasks, figures by member
// - 11: units, words, functions and sets of real numbers in mathematical answers
// - 33: Stripe's library, whose own code checks its signatures and tells its errors apart
// - 10: prices, the ledger, budgets and payments
// - 15: caps that hold while a run is in progress, usage, metrics and traces
// - 26: fleets, and drivers for engines of several versions
// - 18: triggers, webhooks and the library that signs them
// - 8: batches in the formats of other trainers
// - 22: the page's API (filtered lists of a run's rollouts, a rollout in pieces, sessions, links to reports); the page
//   itself is not part of the Worker
// - 5: answers among money, headings and tags, choices as models write them, typeset numbers
// - 8: removing a model's thoughts from its answer, reading judgements that are almost JSON
// - 15: replies, refusals and full contexts in the words of many servers
// - 15: exact numbers, and MCP in all its forms
// - 5: numbers in prose, in the typography of many countries, and more forms of judgements and choices
// - 4: refusals in the formats of web frameworks and gateways, streams that fail in the middle
// - 1: turns of computing, and quotas shared by organisation
// - 1: reservations for lost calls, and their release
// - 1: scopes that end with the person who gave them, comparisons that say what they can detect
// - 4: telling apart what a sentence denies, doubts or quotes from the choice and the judgement that it gives
// - 5: clauses next to an answer, denied formulas, bounds and sizes of numbers
const LIMIT_KB = 1000;

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
