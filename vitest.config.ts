/**
 * Two runtimes, one suite: test/suites.ts says what runs where. `*.node.test.ts` runs in Node only. Files share a worker in each of them, and in workerd its storage: every test takes ids of its own. A worker of
 * its own costs a file one to three seconds.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { packageNames } from "./scripts/package-names.ts";
import LongestFirst from "./scripts/test-order.ts";
import { networkService } from "./src/local/miniflare.ts";
import { bundlePage } from "./src/local/page-bundle.ts";
import { TEST_HANGS_MS, WAIT_HANGS_MS } from "./test/hang-limits.ts";
import { AT_LENGTH, NODE, WORKERD } from "./test/suites.ts";

/** Recorded behaviours are a file, and workerd has none. */
const vectors = "./test/conformance/provide-vectors.ts";
const quietLog = "./test/quiet/log.ts";
/** `npm test` leaves long suites and second runs to `npm run test:all`. */
const without = process.env["QUICK"] === undefined ? { node: [], workerd: [] } : AT_LENGTH;

const alias = packageNames(import.meta.dirname);

// Each of the many processes that tests start would compile the same sources anew.
process.env["NODE_COMPILE_CACHE"] ??= join(tmpdir(), "rollcall-tests-compiled");

// Commands that tests start know no profile of whoever runs them.
process.env["ROLLCALL_CONFIG"] = join(tmpdir(), "rollcall-tests-have-no-profiles.json");

// The tests bring the secret that wrangler.toml requires; what wrangler says of it is noise.
process.env["WRANGLER_LOG"] ??= "error";

// The Worker's assets: without their folder no workerd starts.
await bundlePage(import.meta.dirname);

const patience = {
  testTimeout: TEST_HANGS_MS,
  hookTimeout: TEST_HANGS_MS,
  expect: { poll: { timeout: WAIT_HANGS_MS } },
};

const nodeProject = {
  resolve: { alias },
  test: {
    name: "node",
    ...patience,
    isolate: false,
    globalSetup: [vectors],
    setupFiles: [quietLog, "./test/quiet/platform.ts"],
    include: NODE.include,
    exclude: [...NODE.exclude, ...without.node],
  },
};

const SECOND_DATABASE = `
[[d1_databases]]
binding = "DB_1"
database_name = "rollcall-1"
database_id = "00000000-0000-0000-0000-000000000001"
`;

/**
 * wrangler.toml but for one flag: the tests, and what runs them in workerd, take the bindings from an import. And with a
 * second D1 database.
 */
function configOfTests(): string {
  const config = readFileSync("wrangler.toml", "utf8")
    .replace(', "disallow_importable_env"', "")
    // What it names stays where it is.
    .replaceAll(/"(src|dist|migrations)(?=["/])/g, (_, folder: string) => `"${resolve(folder)}`);
  const file = resolve("dist/tests/wrangler.toml");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, config + SECOND_DATABASE);
  return file;
}

const inWorkerd = cloudflareTest(async ({ inject }) => ({
  wrangler: { configPath: configOfTests() },
  miniflare: {
    bindings: {
      MODEL_URL: inject<string>("modelUrl"),
      MCP_URL: inject<string>("mcpUrl"),
      ACCESS_URL: inject<string>("accessUrl"),
      COLLECTOR_URL: inject<string>("collectorUrl"),
      TEST_MIGRATIONS: await readD1Migrations("./migrations"),
      ALLOW_PRIVATE_ENDPOINTS: "true",
      MEMORY_BUDGET_MIB: 1024,
      ROLLCALL_SECRET: "5ec2e7".repeat(10).padEnd(64, "0"),
      ROLLCALL_SECRETS_BEFORE: "4e".repeat(32),
    },
    // The local platform's way out under another name: what does not say so leaves by fetch, as in a deployment.
    serviceBindings: { OPEN_NETWORK: networkService(true), PUBLIC_NETWORK: networkService(false) },
  },
}));

/** Measured inside workerd, and by name only: `npm run bench:lists`. */
const benches = process.env["BENCHES"] === undefined ? [] : ["test/kernel/**/*.bench.ts"];

const workerdProject = {
  resolve: { alias },
  plugins: [inWorkerd],
  test: {
    name: "workerd",
    ...patience,
    isolate: false,
    include: [...WORKERD.include, ...benches],
    exclude: [...WORKERD.exclude, ...without.workerd],
    globalSetup: [
      vectors,
      "./test/kernel/scripted-model.ts",
      "./test/hub/provide-bundles.ts",
      "./test/quiet/workerd.ts",
    ],
    setupFiles: [quietLog, "./test/kernel/apply-migrations.ts"],
  },
};

export default defineConfig({
  test: {
    projects: [nodeProject, workerdProject],
    sequence: { sequencer: LongestFirst },
    // On two cores the default is one worker, and most of a test is waiting for a process to boot.
    maxWorkers: 4,
    provide: { histories: Number(process.env["HISTORIES"] ?? 1) },
    reporters: process.env["CI"] ? ["default", "./scripts/totals-reporter.ts"] : ["default"],
  },
});
