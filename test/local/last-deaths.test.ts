/** Which deaths of workerd count as caused by itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { wasKilled, watchForKills } from "../../src/local/processes.ts";
import { noteDeaths, noteRunning, noteStopped } from "../../src/local/state-directory.ts";

test("a child that was killed is distinguished from one that ended by itself", async () => {
  watchForKills();
  const endOf = async (script: string) => {
    const child = spawn(process.execPath, ["-e", script], { stdio: "ignore" });
    await once(child, "exit");
    return wasKilled(child.pid ?? 0);
  };
  expect(await endOf("process.kill(process.pid, 'SIGKILL')")).toBe(true);
  expect(await endOf("process.abort()")).toBe(false);
  expect(await endOf("process.exit(1)")).toBe(false);
});

test("a platform that ended with its workerd counts as killed, and earlier deaths stay recorded", () => {
  const directory = mkdtempSync(join(tmpdir(), "rollcall-deaths-"));
  expect(noteRunning(directory)).toEqual({ deaths: 0, byItself: 0 });
  expect(noteRunning(directory)).toEqual({ deaths: 1, byItself: 0 });
  noteDeaths(directory, { deaths: 2, byItself: 1 });
  expect(noteRunning(directory)).toEqual({ deaths: 3, byItself: 1 });
  noteStopped(directory);
  expect(noteRunning(directory)).toEqual({ deaths: 0, byItself: 0 });
  rmSync(directory, { recursive: true });
});
