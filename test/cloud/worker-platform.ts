/** The Worker in a real workerd, with an empty database that is migrated, as `rollcall deploy --empty` leaves it. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogLevel, type Miniflare, type MiniflareOptions } from "miniflare";
import { onTestFinished } from "vitest";
import { bundleWorker } from "../../src/local/bundle.ts";
import { migrate } from "../../src/local/migrate.ts";
import { miniflareOptions, quietMiniflare, StderrLog } from "../../src/local/miniflare.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { bundlePage } from "../../src/local/page-bundle.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { Requests } from "../../src/sdk/requests.ts";

const BOOTSTRAP = "a-token-to-make-the-first-organisation";

export interface WorkerPlatform {
  /** Of a proxy in front of it. */
  readonly url: string;
  /** What the Worker logged. */
  readonly said: readonly string[];
  /** `POST /path` of every request through the proxy. */
  readonly seen: string[];
  /** Called after the effect of a request, before its reply. */
  afterEffect: (request: string) => Promise<void>;
  /** True for a request that the proxy answers itself, with a page, as one that asks for a login does. */
  answerStrangely: (request: string) => boolean;
  /** By number. */
  readonly databases: readonly D1Database[];
  /** Creates the first organisation, and returns its key. */
  found(): Promise<string>;
  client(apiKey: string, project?: string): RollcallClient;
  /** For paths below /v1. */
  requests(apiKey: string): Requests;
  stop(): Promise<void>;
}

/**
 * Stopped at the end of the test. `undelivered`: queues that take messages and deliver none. `count`: how many D1 databases
 * it has.
 */
export async function startWorker(
  secret: string,
  undelivered: readonly string[] = [],
  count = 1,
): Promise<WorkerPlatform> {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-worker-"));
  const said: string[] = [];
  const options = await miniflareOptions({
    root: PACKAGE_ROOT,
    bundle: await bundleWorker(PACKAGE_ROOT),
    page: await bundlePage(PACKAGE_ROOT),
    store: folder,
    port: 0,
    databases: count,
    bindings: {
      ...{ ALLOW_PRIVATE_ENDPOINTS: "true", ROLLCALL_SECRET: secret, ROLLCALL_BOOTSTRAP_TOKEN: BOOTSTRAP },
      LIVE_OBJECT_CEILING: 0,
    },
    lastEnd: async () => ({ deaths: 0, byItself: 0 }),
    log: new StderrLog(LogLevel.NONE),
    // Lines of the Worker are JSON; others are notices of workerd.
    onOutput: (line) => {
      if (line.startsWith("{")) said.push(line);
    },
    onRestart: async () => undefined,
  });
  const miniflare: Miniflare = quietMiniflare(withoutConsumers(options, undelivered));
  const inner = await miniflare.ready;
  const databases = await openDatabases(miniflare, count);
  const platform = {
    seen: [] as string[],
    afterEffect: async (_: string): Promise<void> => undefined,
    answerStrangely: (_: string) => false,
  };
  const proxy = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    const name = `${method} ${url.split("?")[0]}`;
    if (platform.answerStrangely(name)) {
      response.writeHead(403, { "content-type": "text/html" }).end("<html>Sign in</html>");
      return;
    }
    const passed = send(`${inner.origin}${url}`, { method, headers }, (reply) => {
      platform.seen.push(name);
      platform.afterEffect(name).then(
        () => reply.pipe(response.writeHead(reply.statusCode ?? 500, reply.headers)),
        (thrown: unknown) => response.writeHead(500).end(String(thrown)),
      );
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= (async () => {
      proxy.closeAllConnections();
      proxy.close();
      await miniflare.dispose();
      rmSync(folder, { recursive: true });
    })();
    return stopped;
  };
  onTestFinished(stop);
  const client = (apiKey: string, project?: string) => new RollcallClient({ baseUrl: url, apiKey, project });
  const found = async () => {
    const { key } = await client(BOOTSTRAP).organizations.bootstrap({ name: "a laboratory" });
    if (key.key === null) throw new Error("the first key is not shown");
    return key.key;
  };
  const requests = (apiKey: string) => new Requests({ baseUrl: url, apiKey });
  return Object.assign(platform, { url, said, databases, client, requests, found, stop });
}

/** Migrated, by number. */
async function openDatabases(miniflare: Miniflare, count: number): Promise<D1Database[]> {
  const databases: D1Database[] = [];
  for (let number = 0; number < count; number += 1) {
    const database = await miniflare.getD1Database(number === 0 ? "DB" : `DB_${number}`);
    await migrate(database, join(PACKAGE_ROOT, "migrations"));
    databases.push(database);
  }
  return databases;
}

function withoutConsumers({ workers, ...options }: MiniflareOptions, queues: readonly string[]): MiniflareOptions {
  const isConsumed = ({ type, name = "" }: { readonly type: string; readonly name?: string }) =>
    type !== "queue" || !queues.includes(name);
  return {
    ...options,
    workers: workers.map(({ config, ...worker }) => ({
      ...worker,
      config: { ...config, triggers: (config.triggers ?? []).filter(isConsumed) },
    })),
  };
}
