/**
 * `npm run check`: runs every static gate, two at a time, and prints one line each with its time; the output of failed
 * gates follows the table. Nothing tracked is written, except with --fix, where Biome first formats and repairs what it
 * can. Plain JavaScript: it also starts under an older Node and runs each gate under the bundled one.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LANES = 2;

/** Longest first, so that both lanes end at about the same time. */
const GATES = {
  types: "tsc -b tsconfig.json tsconfig.web.json",
  lint: "biome check --error-on-warnings",
  "bundle size": "node scripts/check-bundle.ts",
  imports: "depcruise src packages environments",
  "unused code": "knip --no-progress",
  "types of the bindings": "wrangler types --check",
  "migrations match the schema": "node scripts/check-migrations.ts",
  "compiled GEMM": "node scripts/build-gemm.ts --check",
  "reference pages": "node scripts/reference/main.ts --check",
  "plain English": "node scripts/check-style.ts",
  "environment digests": "node scripts/digests.ts --check",
};

/** Runs one command line in the project root; resolves to its exit status, its output and its seconds. */
function run(commandLine) {
  const startedAt = performance.now();
  const env = {
    ...process.env,
    PATH: resolve(ROOT, "node_modules/.bin") + delimiter + process.env.PATH,
    WRANGLER_SEND_METRICS: "false",
  };
  const child = spawn(commandLine, { cwd: ROOT, env, shell: true });
  const chunks = [];
  child.stdout.on("data", (chunk) => chunks.push(chunk));
  child.stderr.on("data", (chunk) => chunks.push(chunk));
  return new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (status) => {
      const seconds = (performance.now() - startedAt) / 1000;
      done({ ok: status === 0, output: Buffer.concat(chunks).toString(), seconds });
    });
  });
}

async function runGates() {
  const waiting = Object.entries(GATES);
  const failed = [];
  const lane = async () => {
    for (let gate = waiting.shift(); gate !== undefined; gate = waiting.shift()) {
      const [name, commandLine] = gate;
      const { ok, output, seconds } = await run(commandLine);
      console.log(`${ok ? "ok    " : "FAILED"} ${seconds.toFixed(1).padStart(5)} s  ${name}`);
      if (!ok) failed.push({ name, commandLine, output });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return failed;
}

if (!existsSync(resolve(ROOT, "node_modules/typescript"))) {
  console.error("The tools are not installed yet: node scripts/install.mjs");
  process.exit(1);
}
if (process.argv.includes("--fix")) {
  const { output } = await run("biome check --write");
  console.log(output.trim());
}
const startedAt = performance.now();
const failed = await runGates();
for (const { name, commandLine, output } of failed) {
  console.log(`\n── ${name}: ${commandLine}\n${output.trim()}`);
}
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(
  `\n${Object.keys(GATES).length - failed.length} of ${Object.keys(GATES).length} gates passed in ${seconds} s`,
);
process.exitCode = failed.length === 0 ? 0 : 1;
