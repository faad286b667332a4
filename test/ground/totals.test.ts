/** The line a machine reads at the end of a test run, from real runs of throw-away suites. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
let tree = "";

function lastLine(files: Record<string, string>): string | undefined {
  tree = mkdtempSync(join(tmpdir(), "rollcall-totals-"));
  symlinkSync(join(ROOT, "node_modules"), join(tree, "node_modules"));
  writeFileSync(join(tree, "vitest.config.js"), "export default {};\n");
  for (const [name, body] of Object.entries(files)) {
    const source = `import { expect, test } from "vitest";\n${body}\n`;
    writeFileSync(join(tree, `${name}.test.js`), source);
  }
  const reporter = join(ROOT, "scripts/totals-reporter.ts");
  const reporters = ["--reporter=default", `--reporter=${reporter}`];
  const vitest = join(ROOT, "node_modules/.bin/vitest");
  const { stdout } = spawnSync(process.execPath, [vitest, "run", "--root", tree, ...reporters], {
    encoding: "utf8",
  });
  return stdout.trimEnd().split("\n").at(-1);
}

afterEach(() => rmSync(tree, { recursive: true }));

test("passed and failed tests are counted, skipped ones only when there are any", () => {
  const good = 'test("good", () => expect(1).toBe(1));';
  expect(lastLine({ good })).toBe("1 passed, 0 failed");
  rmSync(tree, { recursive: true });
  const mixed = `${good} test("bad", () => expect(1).toBe(2)); test.skip("later", () => {});`;
  expect(lastLine({ mixed })).toBe("1 passed, 1 failed, 1 skipped");
});

test("a file that does not load is a failure", () => {
  const good = 'test("good", () => expect(1).toBe(1));';
  expect(lastLine({ good, broken: 'throw new Error("no");' })).toBe("1 passed, 1 failed");
});

test("an error outside every test is a failure", () => {
  const late = 'test("good", async () => { Promise.reject(new Error("lost")); });';
  expect(lastLine({ late })).toBe("1 passed, 1 failed");
});
