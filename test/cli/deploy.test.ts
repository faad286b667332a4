import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { configFor } from "../local/deployable.ts";
import { rollcall } from "./run-rollcall.ts";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "rollcall-deploy-check-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("the release's own settings are not fit to deploy, and the table says what to do", async () => {
  const { code, stdout, stderr } = await rollcall(["deploy", "check"], {}, undefined, ROOT);
  expect([code, stderr]).toEqual([1, ""]);
  expect(stdout).toBe(
    [
      "✗ DB has no database: database_id is a placeholder",
      '    database_id = "…", as printed by wrangler d1 create rollcall',
      "",
      "Secrets are not in wrangler.toml: list them with wrangler secret list --config wrangler.toml.",
      "not ready to deploy: 1 of 1 findings are errors",
      "",
    ].join("\n"),
  );
});

test("a missing file is wrong usage, and one that wrangler cannot read is an error", async () => {
  const none = await rollcall(["deploy", "check", "--json"], {}, undefined, folder);
  expect([none.code, JSON.parse(none.stdout).error.param]).toEqual([2, "config"]);
  const broken = join(folder, "broken.toml");
  writeFileSync(broken, 'name = "x"\n[[queues');
  const { code, stdout } = await rollcall(["deploy", "check", "--config", broken, "--json"]);
  const found = JSON.parse(stdout);
  expect([code, found.ok, found.bundle_bytes]).toEqual([1, false, null]);
  expect(found.findings).toEqual([
    { level: "error", what: expect.stringContaining("Invalid TOML document"), fix: expect.any(String) },
  ]);
});

test("a Worker that does not bundle is an error with the bundler's message", async () => {
  const file = join(folder, "wrangler.toml");
  writeFileSync(join(folder, "worker.ts"), 'import "./not-there.ts";\nexport default {};\n');
  writeFileSync(file, configFor(ROOT, [[`main = "${join(ROOT, "src/index.ts")}"`, 'main = "worker.ts"']]));
  const { code, stdout } = await rollcall(["deploy", "check", "--bundle", "--json"], {}, undefined, folder);
  const { ok, findings, bundle_bytes } = JSON.parse(stdout);
  expect([code, ok, bundle_bytes]).toEqual([1, false, null]);
  expect(findings[1]).toMatchObject({ level: "error", what: expect.stringContaining("not-there.ts") });
  expect(readFileSync(file, "utf8")).toContain('main = "worker.ts"');
});

test("a URL without a platform is an error, and an invalid URL is wrong usage", async () => {
  const file = join(folder, "good.toml");
  writeFileSync(file, configFor(ROOT));
  const asked = (url: string) => rollcall(["deploy", "check", "--config", file, "--url", url, "--json"]);
  const { code, stdout } = await asked("http://127.0.0.1:9");
  expect(code).toBe(1);
  expect(JSON.parse(stdout).findings).toEqual([
    { level: "error", what: expect.stringContaining("/healthz got no answer"), fix: expect.any(String) },
  ]);
  expect((await asked("example.com")).code).toBe(2);
});
