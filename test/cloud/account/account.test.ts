/** `npm run test:cloud` against a stub of Cloudflare's API, with the platform and the probe Worker in local workerd. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TEST_HANGS_MS } from "../../hang-limits.ts";
import { openAccountStand } from "./account-stand.ts";
import { FORCED_DELETE, WAVES } from "./questions.ts";
import type { Report } from "./report.ts";

const MAIN = join(import.meta.dirname, "main.ts");
const QUESTIONS = [...WAVES.flat(), FORCED_DELETE].map(({ id }) => id);

type Stand = Awaited<ReturnType<typeof openAccountStand>>;

/** `onStderr` gets what was printed so far. */
function testCloud(
  { env, account, words, folder }: Stand,
  more: readonly string[],
  onStderr: (said: string, kill: () => void) => void = () => undefined,
) {
  return new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve, reject) => {
    const all = ["--account", account, "--short", "--out", join(folder, "out"), ...words, ...more];
    const child = spawn(process.execPath, [MAIN, ...all], { env: { ...process.env, ...env } });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (part) => {
      stdout += part;
    });
    child.stderr.on("data", (part) => {
      stderr += part;
      onStderr(stderr, () => child.kill("SIGINT"));
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

const reportIn = ({ folder }: Stand): Report => JSON.parse(readFileSync(join(folder, "out/report.json"), "utf8"));

test("every question gets an answer of its kind, and nothing is left", { timeout: TEST_HANGS_MS }, async () => {
  const stand = await openAccountStand();
  const { stub } = stand;
  stub.analytics = () => {
    const dimensions = { namespaceId: "players" };
    const other = { sum: { duration: 900, rowsRead: 0, rowsWritten: 0 }, dimensions: { namespaceId: "other" } };
    const invocations = [{ sum: { requests: 100 }, dimensions }];
    const periodic = [{ sum: { duration: 2, rowsRead: 50, rowsWritten: 40 }, dimensions }, other];
    return { status: 200, body: { data: { viewer: { accounts: [{ invocations, periodic }] } }, errors: null } };
  };
  const { code, stdout, stderr } = await testCloud(stand, ["--yes"]);
  const report = reportIn(stand);
  const verdicts = Object.fromEntries(report.answers.map(({ id, verdict }) => [id, verdict]));
  // How long a message or a seventh call takes is that of this machine.
  const { queue, "seventh-streaming": streaming, "seventh-waiting": waiting, ...others } = verdicts;
  expect([queue, streaming, waiting], stderr).not.toContain("undecided");
  expect(others, stderr).toEqual({
    // This workerd ends no silent call, and limits neither bodies nor rows nor memory.
    ...{ silence: "undecided", body: "stricter", "error-texts": "undecided" },
    ...{ memory: "undecided", "d1-overload": "undecided", "code-updated": "undecided" },
    ...{ stream: "agrees", facet: "agrees", "sql-run": "agrees", "d1-atomic": "agrees", alarms: "agrees" },
    ...{ cost: "agrees", "rpc-value": "agrees", multipart: "agrees", "full-bucket": "agrees" },
    ...{ "forced-delete": "agrees" },
  });
  expect(Object.keys(verdicts).sort()).toEqual(QUESTIONS.toSorted());
  expect(report).toMatchObject({ target: "local", left: [], ended: null });
  const cost = report.answers.find(({ id }) => id === "cost");
  // (2 × 12.5 + 100 × 0.15 + 40 × 1 + 50 × 0.001) / 1e6 dollars for 4 rollouts.
  expect(cost?.raw).toMatchObject({ billed: { gb_s: 2 }, dollars_per_1000: expect.closeTo(0.02001, 4) });
  const { databases, buckets, queues, workers } = stub.state();
  expect({ databases, buckets, queues, workers }).toEqual({ databases: [], buckets: {}, queues: {}, workers: {} });
  expect(readdirSync(join(stand.folder, "out")).sort()).toEqual(["config.json", "report.json", "report.md"]);
  const text = readFileSync(stdout.trim(), "utf8");
  expect(text).toContain("Nothing here is an answer about Cloudflare");
  for (const id of QUESTIONS) expect(text).toContain(`\n## ${id}\n`);
  expect(code).toBe(Object.values(verdicts).includes("differs") ? 1 : 0);
});

test("Ctrl-C deletes everything, and what cannot be deleted is named with the command that does it", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openAccountStand();
  const { stub } = stand;
  let killed = false;
  const ended = await testCloud(stand, ["--yes"], (said, kill) => {
    if (killed || !said.includes("measuring silence")) return;
    killed = true;
    kill();
  });
  expect(ended.code, ended.stderr).toBe(1);
  const { name, left, ended: why } = reportIn(stand);
  expect([why, left]).toEqual(["it was interrupted", [`the bucket rollcall-${name}-probe: it has objects`]]);
  expect(ended.stderr).toContain(`--destroy ${name} --out`);
  const state = stub.state();
  expect([Object.keys(state.workers), Object.keys(state.queues), state.databases]).toEqual([[], [], []]);
  const again = await testCloud(stand, ["--destroy", name]);
  expect([again.code, stub.state().buckets]).toEqual([0, {}]);
});

test("nothing is created without a confirmation, and the estimate comes first", {
  timeout: TEST_HANGS_MS,
}, async () => {
  const stand = await openAccountStand();
  const { code, stderr } = await testCloud(stand, []);
  expect([code, stand.stub.seen]).toEqual([2, []]);
  expect(stderr).toMatch(/At most \d+ minutes, and about \$0\.\d\d of usage/);
  expect(stderr).toContain("Nothing was created: confirm with --yes.");
});
