/**
 * Boots the platform with the faulty Worker, in a process that can be killed:
 *   node test/faults/platform-main.ts <state directory> <port> <address of the knobs> <number of D1 databases> [<rollouts>]
 * Runs with more rollouts at once than that have gatherers; without it, those with more than 5,000.
 * Prints one JSON line when it is ready. It ends when its parent process ends.
 */
import { bootPlatform } from "../../src/local/platform.ts";
import { faultWorker } from "./fault-worker.ts";

const LOOK_EVERY_MS = 1000;

const starter = process.ppid;
const orphaned = new Promise<Error>((resolve) => {
  setInterval(() => {
    if (process.ppid !== starter) resolve(new Error("whoever started this platform is gone"));
  }, LOOK_EVERY_MS);
});
const [directory = null, port, knobs = "", databases = "1", gatheredAbove = ""] = process.argv.slice(2);
const platform = await bootPlatform({
  ...faultWorker(),
  directory,
  port: Number(port),
  databases: Number(databases),
  bindings: { FAULTS: knobs, ...(gatheredAbove !== "" && { GATHERED_ABOVE: Number(gatheredAbove) }) },
  log: (line) => process.stderr.write(`${line}\n`),
});
process.stdout.write(`${JSON.stringify({ url: platform.url })}\n`);
const reason = await Promise.race([platform.lost, orphaned]);
process.stderr.write(`${reason.message}\n`);
await platform.stop();
process.exit(1);
