/**
 * A stub of Cloudflare behind which the uploaded Workers run in local workerd: an upload starts the Worker on its port,
 * with the secrets of the upload. Buckets, databases and queues of the Workers are workerd's own; the stub only lists
 * them.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, type Miniflare } from "miniflare";
import { onTestFinished } from "vitest";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { bundleWorker } from "../../../src/local/bundle.ts";
import { readReleased, withConfig } from "../../../src/local/deployment-config.ts";
import { migrate } from "../../../src/local/migrate.ts";
import { miniflareOptions, quietMiniflare } from "../../../src/local/miniflare.ts";
import { PACKAGE_ROOT } from "../../../src/local/package-root.ts";
import { bundlePage } from "../../../src/local/page-bundle.ts";
import { freePort } from "../../../src/local/ports.ts";
import { NO_DEATHS } from "../../../src/local/state-directory.ts";
import { callWrangler } from "../../../src/local/wrangler.ts";
import { testPort } from "../../local/test-port.ts";
import { CloudflareStub } from "../cloudflare-stub.ts";
import { probeConfig, probeNames } from "./deploy-probe.ts";

const ACCOUNT = "a".repeat(32);

/** Closed at the end of the test. */
export async function openAccountStand() {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-account-test-"));
  const { stub, url: api, stop } = await CloudflareStub.start([ACCOUNT]);
  const running: { product: Miniflare | null; probe: Miniflare | null } = { product: null, probe: null };
  onTestFinished(async () => {
    await Promise.all([stop(), running.product?.dispose(), running.probe?.dispose()]);
    rmSync(folder, { recursive: true });
  });
  const product = await freePort(testPort(20));
  const probe = await freePort(product + 1);
  stub.afterEffect = async ({ kind }) => {
    // The probes fill their bucket, and the command empties it: here by the first refusal to delete it.
    const bucket = [...stub.buckets].find(([name]) => name.endsWith("-probe"))?.[1];
    if (bucket !== undefined && kind === "POST /r2/buckets") bucket.objects = 1;
    if (bucket !== undefined && kind === "DELETE /r2/buckets/*") bucket.objects = 0;
    const workers = [...stub.workers];
    const secretsOf = (probes: boolean) => workers.find(([name]) => name.endsWith("-probe") === probes)?.[1].secrets;
    const [ofProduct, ofProbe] = [secretsOf(false), secretsOf(true)];
    if (kind === "PUT /workers/scripts/*" && ofProbe !== undefined) {
      running.probe ??= await startProbe(folder, probe, ofProbe);
    } else if (/^(PUT|DELETE) \/workers\/scripts\/\*(\/secrets\/\*)?$/.test(kind) && ofProduct !== undefined) {
      // Without the bootstrap token it is another process with the same storage.
      await running.product?.dispose();
      running.product = await startProduct(folder, product, ofProduct);
    }
  };
  return {
    ...{ stub, folder, account: ACCOUNT },
    env: { CLOUDFLARE_API_BASE_URL: api, CLOUDFLARE_API_TOKEN: "a-token-of-cloudflare" },
    words: ["--url", `http://127.0.0.1:${product}`, "--probe-url", `http://127.0.0.1:${probe}`],
  };
}

async function startProduct(folder: string, port: number, secrets: Readonly<Record<string, string>>) {
  const miniflare = quietMiniflare(
    await miniflareOptions({
      root: PACKAGE_ROOT,
      bundle: await bundleWorker(PACKAGE_ROOT),
      page: await bundlePage(PACKAGE_ROOT),
      store: join(folder, "product"),
      port,
      bindings: { ...secrets, ALLOW_PRIVATE_ENDPOINTS: "true" },
      lastEnd: async () => NO_DEATHS,
      log: new Log(LogLevel.ERROR),
      onOutput: () => undefined,
      onRestart: async () => undefined,
    }),
  );
  await miniflare.ready;
  await migrate(await miniflare.getD1Database("DB"), join(PACKAGE_ROOT, "migrations"));
  return miniflare;
}

async function startProbe(folder: string, port: number, secrets: Readonly<Record<string, string>>) {
  const placed = { accountId: ACCOUNT, databaseId: "probe", productBucket: "product" };
  const config = probeConfig(await readReleased(PACKAGE_ROOT), probeNames("local"), placed);
  const outdir = join(folder, "probe-bundle");
  const options = await withConfig(config, async ({ folder: at, file }) => {
    await callWrangler(["deploy", "--dry-run", "--config", file, "--outdir", outdir], { folder: at });
    return unstable_getMiniflareWorkerOptions(file).workerOptions;
  });
  const { modulesRules: _, ...worker } = options;
  const miniflare = quietMiniflare(
    convertV4MiniflareOptions({
      ...worker,
      modules: [{ type: "ESModule", path: join(outdir, "probe-worker.js") }],
      modulesRoot: outdir,
      bindings: secrets,
      host: "127.0.0.1",
      port,
      resourcePersistencePath: join(folder, "probe"),
      cf: false,
      log: new Log(LogLevel.ERROR),
    }),
  );
  await miniflare.ready;
  return miniflare;
}
