/** The targets of links to the page, and whether a browser is opened. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openerOf, pathOf } from "../../src/cli/page-link.ts";

test("a link leads to the page of the named run or rollout, and to all runs without a name", () => {
  expect([pathOf(undefined), pathOf("run_1"), pathOf("ro_1_0_0_0_x")]).toEqual([
    "/",
    "/runs/run_1",
    "/rollouts/ro_1_0_0_0_x",
  ]);
  for (const id of ["gsm8k", "run_1&to=//evil.test", "key_1"]) expect(() => pathOf(id)).toThrow("not the id of a run");
});

test("a browser is opened for a person at a screen, and never in CI, over ssh or into a pipe", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-opener-"));
  const opener = join(folder, "xdg-open");
  writeFileSync(opener, "");
  chmodSync(opener, 0o755);
  const screen = { PATH: `:${folder}`, DISPLAY: ":0" };
  const found = (env: Record<string, string>, isTTY = true, platform = "linux") => openerOf({ env, platform, isTTY });
  try {
    expect(await found(screen)).toBe(opener);
    expect(await found({ PATH: screen.PATH, WAYLAND_DISPLAY: "w" })).toBe(opener);
    expect(await found({}, true, "darwin")).toBe("/usr/bin/open");
    for (const env of [
      { ...screen, CI: "1" },
      { ...screen, SSH_CONNECTION: "a" },
      { PATH: screen.PATH },
      { DISPLAY: ":0" },
    ]) {
      expect(await found(env)).toBeNull();
    }
    expect([await found(screen, false), await found(screen, true, "win32")]).toEqual([null, null]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
