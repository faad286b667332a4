/**
 * Boots a platform that ends itself with kill -9 during its first reload. Arguments: the state directory, the port, the
 * moment, and the folder of an environment that the platform has from the start.
 */
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { resolveEnvironmentPackage } from "../../src/local/environment-package.ts";
import { bootPlatform } from "../../src/local/platform.ts";
import { isRunning, markOf, type ProcessMark } from "../../src/local/processes.ts";

const [directory = "", port, moment, folder = ""] = process.argv.slice(2);
let first: ProcessMark | null = null;

function endOnce(isNow: boolean): void {
  if (!isNow) return;
  writeSync(2, `killed ${moment}\n`);
  process.kill(process.pid, "SIGKILL");
}

function isFirstGone(): boolean {
  return first !== null && !isRunning(first);
}

/** The platform records a workerd in its lock as soon as it exists. */
function isNextRecorded(): boolean {
  const { workerd } = JSON.parse(readFileSync(join(directory, "platform.lock"), "utf8"));
  return workerd !== null && workerd.pid !== first?.pid;
}

const platform = await bootPlatform({
  directory,
  port: Number(port),
  environments: [resolveEnvironmentPackage(folder, directory)],
  log: (line) => process.stderr.write(`${line}\n`),
  // The platform reads these two between its steps.
  get bindings() {
    endOnce(moment === "before the next" && isFirstGone());
    return {};
  },
  get signal() {
    endOnce(moment === "after the next" && isFirstGone() && isNextRecorded());
    return undefined;
  },
});
first = markOf(platform.workerdPid());
process.stdout.write(`${JSON.stringify({ url: platform.url })}\n`);
