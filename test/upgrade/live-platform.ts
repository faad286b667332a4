/**
 * A platform whose code changes while its state stays, as during a gradual upgrade. Of two versions, one has the objects
 * and one the consumers of the queues, and both serve the API: D1, R2 and the queues are shared, and each version
 * calls the objects of the other. At Cloudflare each object has a version of its own; here all of them change together,
 * with a kill in between.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Log, LogLevel, type Miniflare, type MiniflareOptions } from "miniflare";
import { onTestFinished } from "vitest";
import { migrate } from "../../src/local/migrate.ts";
import { miniflareOptions, quietMiniflare } from "../../src/local/miniflare.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import { bundlePage } from "../../src/local/page-bundle.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import type { Release } from "./releases.ts";

const SECRET = "0d".repeat(32);
const BOOTSTRAP = "a-token-to-make-the-first-organisation";
/** Where objects are stored depends on the name of their Worker. */
const OBJECTS = "rollcall";
const OTHER = "other";

export interface Mix {
  readonly objects: Release;
  readonly consumers: Release;
}

export class LivePlatform {
  readonly #store = mkdtempSync(join(tmpdir(), "rollcall-upgrade-"));
  #running: { readonly miniflare: Miniflare; readonly mix: Mix } | null = null;
  /** What both versions logged. */
  readonly said: string[] = [];

  constructor() {
    onTestFinished(async () => {
      await this.kill();
      rmSync(this.#store, { recursive: true });
    });
  }

  /** Kills what runs, and starts this mix on the same state. The schema of D1 is that of this version. */
  async boot(mix: Mix): Promise<void> {
    await this.kill();
    const one = mix.objects === mix.consumers;
    const [objects, others] = await Promise.all([
      this.#optionsOf(mix.objects),
      one ? null : this.#optionsOf(mix.consumers),
    ]);
    const there = new Set(objects.workers.flatMap(classesOf));
    // Consumers belong to the Worker, and not to a version of it: the older version gets messages of new queues, too.
    const latest = await this.#optionsOf({ ...mix.objects, root: PACKAGE_ROOT });
    const queues = latest.workers.flatMap(({ config }) => config.triggers ?? []).filter(({ type }) => type === "queue");
    const workers = [
      ...objects.workers.map((worker) => renamed(worker, OBJECTS, { triggers: one ? queues : [], there })),
      ...(others?.workers ?? []).map((worker) => renamed(worker, OTHER, { triggers: queues, there })),
    ];
    const miniflare = quietMiniflare({ ...objects, workers });
    await miniflare.ready;
    this.#running = { miniflare, mix };
    await migrate(await miniflare.getD1Database("DB", OBJECTS), join(PACKAGE_ROOT, "migrations"));
  }

  async kill(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    await running?.miniflare.dispose();
  }

  /** Of the API in this version's code. Requests fail while nothing runs. */
  client(release: Release, apiKey = BOOTSTRAP): RollcallClient {
    const send = async (url: string | URL | Request, init?: RequestInit) => {
      const running = this.#running;
      if (running === null) throw new TypeError("the platform was killed");
      const { objects, consumers } = running.mix;
      const name = objects === release ? OBJECTS : OTHER;
      if (objects !== release && consumers !== release) throw new TypeError(`${release.name} does not run`);
      const worker = await running.miniflare.getWorker(name);
      return (await worker.fetch(String(url), init as never)) as unknown as Response;
    };
    return new RollcallClient({ baseUrl: "http://rollcall.example", apiKey, fetch: send as typeof fetch });
  }

  async #optionsOf({ root, bundle }: Release): Promise<MiniflareOptions> {
    const options = await miniflareOptions({
      ...{ root, bundle, page: await bundlePage(PACKAGE_ROOT), store: this.#store, port: 0 },
      bindings: {
        ...{ ALLOW_PRIVATE_ENDPOINTS: "true", ROLLCALL_SECRET: SECRET, ROLLCALL_BOOTSTRAP_TOKEN: BOOTSTRAP },
        LIVE_OBJECT_CEILING: 0,
      },
      lastEnd: async () => ({ deaths: 0, byItself: 0 }),
      log: new Log(LogLevel.NONE),
      onOutput: (line) => {
        if (line.startsWith("{")) this.said.push(line);
      },
      onRestart: async () => undefined,
    });
    // Without the Worker that has the port: requests come by `getWorker`.
    return { ...options, workers: options.workers.slice(0, 1) };
  }
}

type Worker = MiniflareOptions["workers"][number];

function classesOf({ config }: Worker): string[] {
  return Object.values(config.env ?? {}).flatMap((binding) =>
    binding.type === "durable-object" && binding.exportName !== undefined ? [binding.exportName] : [],
  );
}

/**
 * The Worker under another name, bound to the objects of the Worker that has them. `there`: the classes that it has. No
 * test calls a class that it lacks.
 */
function renamed(
  { config, ...worker }: Worker,
  name: string,
  { triggers, there }: { readonly triggers: Worker["config"]["triggers"]; readonly there: ReadonlySet<string> },
): Worker {
  const kept = Object.entries(config.env ?? {}).filter(
    ([, binding]) => binding.type !== "durable-object" || there.has(binding.exportName ?? ""),
  );
  const env = kept.map(([key, binding]) => {
    return [key, binding.type === "durable-object" ? { ...binding, worker: OBJECTS } : binding] as const;
  });
  return { ...worker, config: { ...config, name, env: Object.fromEntries(env), triggers } };
}
