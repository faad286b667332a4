/** The commands of docs/deploy.md for `wrangler dev`, with storage, a port and a secret's file of their own. */
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { freePort } from "../../src/local/ports.ts";
import { waitUntilReady } from "../../src/local/readyz.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { TEST_HANGS_MS } from "../hang-limits.ts";
import { testPort } from "../local/test-port.ts";

/** The lines of code below the heading. */
function commands(): string[] {
  const page = readFileSync(join(PACKAGE_ROOT, "docs/deploy.md"), "utf8");
  const section = page.split("\n## wrangler dev\n")[1]?.split("\n## ")[0] ?? "";
  const blocks = Array.from(section.matchAll(/```sh\n([\s\S]+?)```/g), ([, block = ""]) => block);
  return blocks.flatMap((block) => block.trim().replaceAll("\\\n", "").split("\n"));
}

test("the documented commands start a platform that plays a run", { timeout: TEST_HANGS_MS }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-wrangler-dev-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const port = await freePort(testPort(30));
  const [secret, migrate, bootstrap, dev, ...others] = commands();
  expect([dev, others.length]).toEqual([expect.stringContaining("npx wrangler dev --local"), 4]);
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false", CI: "true", BOOTSTRAP: "b".repeat(64) };
  expect(bootstrap).toContain("export BOOTSTRAP=");
  const vars = join(folder, ".dev.vars");
  const own = `--persist-to ${join(folder, "state")}`;
  const run = promisify(execFile);
  const around = { cwd: PACKAGE_ROOT, env };
  await run("bash", ["-c", secret?.replace(".dev.vars", vars) ?? ""], around);
  await run("bash", ["-c", `${migrate} ${own}`], around);
  // In a process group of its own: wrangler and its workerd end together.
  const words = `exec ${dev} ${own} --port ${port} --inspector-port 0 --env-file ${vars}`;
  const server = spawn("bash", ["-c", words], { ...around, detached: true, stdio: "ignore" });
  onTestFinished(() => {
    if (server.pid !== undefined) process.kill(-server.pid, "SIGKILL");
  });
  const url = `http://localhost:${port}`;
  await waitUntilReady(url, {
    waitMs: TEST_HANGS_MS,
    signal: AbortSignal.timeout(TEST_HANGS_MS),
    log: () => undefined,
  });
  const founder = new RollcallClient({ baseUrl: url, apiKey: env.BOOTSTRAP });
  const { key } = await founder.organizations.bootstrap({ name: "dev" });
  const model = await startScriptedModel({ reply: () => "42" });
  onTestFinished(() => model.stop());
  const play = others.at(-1)?.replace("http://127.0.0.1:8000/v1", model.url) ?? "";
  const rollcall = join(PACKAGE_ROOT, "bin/rollcall.mjs");
  const { stdout } = await run("bash", ["-c", play.replace("npx rollcall", `${process.execPath} ${rollcall}`)], {
    ...around,
    env: { ...env, ROLLCALL_URL: url, ROLLCALL_API_KEY: key.key ?? "", ROLLCALL_PROJECT: "default" },
  });
  expect(stdout).toMatch(/calculator.+scored 8/);
});
