/**
 * Shows where workerd's time goes during a run: a CPU profile by V8's own sampler, over the inspector.
 *   node bench/profile.ts [rollouts] [turns] [--agent]
 * With `--agent` an agent plays the rollouts by chat completions.
 * Boots the bundle as the local platform does, with an inspector in addition, and prints functions by self time and by
 * total time. Names and places come from the source map, because the bundle is minified. "(program)" is native code:
 * SQLite, sockets, the runtime itself.
 */
import { readFileSync, rmSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { Log, LogLevel, Miniflare } from "miniflare";
import { bundleWorker } from "../src/local/bundle.ts";
import { migrate, seedAccount } from "../src/local/migrate.ts";
import { miniflareOptions } from "../src/local/miniflare.ts";
import { liveObjectQuota, openFileLimit } from "../src/local/open-files.ts";
import { bundlePage } from "../src/local/page-bundle.ts";
import { freePort, unusedPort } from "../src/local/ports.ts";
import { apiKeyOf, localAccount, makeThrowAwayDirectory, NO_DEATHS, secretOf } from "../src/local/state-directory.ts";
import { hottest, type IsolateProfile } from "./hottest.ts";
import { openInspectors } from "./inspector.ts";
import { playEval } from "./play.ts";
import { startModel } from "./processes.ts";

const ROOT = join(import.meta.dirname, "..");
const FIRST_PORT = 8987;
const FIRST_INSPECTOR_PORT = 9329;
/** Miniflare's name for our Worker; the others stand in for services: D1, R2, queues, outgoing requests. */
const OUR_WORKER = "core:user:";

const [rollouts = 1000, turns = 4] = process.argv
  .slice(2)
  .flatMap((text) => (/^\d+$/.test(text) ? [Number(text)] : []));
const byAgent = process.argv.includes("--agent");
const directory = makeThrowAwayDirectory();
const model = await startModel(turns);
const bundle = await bundleWorker(ROOT);
const port = await freePort(FIRST_PORT);
const inspectorPort = await freePort(FIRST_INSPECTOR_PORT);
const runtime = await miniflareOptions({
  root: ROOT,
  bundle,
  page: await bundlePage(ROOT),
  store: join(directory, "store"),
  port,
  entryPort: await unusedPort(),
  lastEnd: async () => NO_DEATHS,
  bindings: {
    ALLOW_PRIVATE_ENDPOINTS: "true",
    LIVE_OBJECT_CEILING: liveObjectQuota(openFileLimit()),
    ROLLCALL_SECRET: secretOf(directory),
  },
  log: new Log(LogLevel.ERROR),
  onOutput: (line) => process.stderr.write(`${line}\n`),
  onRestart: async () => process.exit(1),
});
const miniflare = new Miniflare({ ...runtime, inspectorPort });
try {
  await miniflare.ready;
  const database = await miniflare.getD1Database("DB");
  await migrate(database, join(ROOT, "migrations"));
  const key = apiKeyOf(directory);
  await seedAccount(database, { ...localAccount(directory), key }, 0);
  const inspectors = await openInspectors(inspectorPort);
  for (const inspector of inspectors) await inspector.startProfile();
  const platform = { url: `http://127.0.0.1:${port}`, key };
  const { run, seconds } = await playEval(platform, model.url, { rollouts, turns, byAgent });
  if (run.status !== "completed") throw new Error(`the run is ${run.status}: ${JSON.stringify(run.error)}`);
  const rate = (rollouts / seconds).toFixed(1);
  process.stdout.write(`${rollouts} × ${turns} in ${seconds.toFixed(1)} s (${rate}/s)\n`);
  const map = new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, "utf8")));
  const isolates: IsolateProfile[] = [];
  for (const inspector of inspectors) {
    const { title } = inspector;
    const profile = await inspector.stopProfile();
    isolates.push({ title, profile, map: title.endsWith(OUR_WORKER) ? map : null });
    inspector.close();
  }
  process.stdout.write(hottest(isolates));
} finally {
  await miniflare.dispose();
  await model.stop();
  rmSync(directory, { recursive: true, force: true });
}
