/** Deployments in real workerds, a store for backups, and a folder in which `rollcall deploy backup` runs. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import type { CommandResult } from "../cli/run-rollcall.ts";
import { S3_KEYS, startS3Store } from "../fakes/s3-store.ts";
import { WAIT, WAIT_HANGS_MS } from "../hang-limits.ts";
import { startArithmeticModel } from "../local/arithmetic-model.ts";
import { startWorker, type WorkerPlatform } from "./worker-platform.ts";

const BIN = join(PACKAGE_ROOT, "bin/rollcall.mjs");
export const SECRET = "ba".repeat(32);

export type BackupStand = Awaited<ReturnType<typeof openBackupStand>>;

/** Closed at the end of the test. */
export async function openBackupStand() {
  const store = await startS3Store("backups");
  const folder = mkdtempSync(join(tmpdir(), "rollcall-backups-"));
  onTestFinished(async () => {
    await store.stop();
    rmSync(folder, { recursive: true });
  });
  let running: ChildProcess | null = null;
  const rollcall = (...words: readonly string[]) =>
    new Promise<CommandResult>((resolve, reject) => {
      const env = { ...process.env, ...S3_KEYS, AWS_ENDPOINT_URL_S3: store.url };
      const child = spawn(process.execPath, [BIN, ...words], { cwd: folder, env });
      running = child;
      let [stdout, stderr] = ["", ""];
      child.stdout.on("data", (part) => {
        stdout += part;
      });
      child.stderr.on("data", (part) => {
        stderr += part;
      });
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, stdout, stderr }));
    });
  /** Names a deployment as `rollcall deploy` does. */
  const record = ({ url }: WorkerPlatform, name: string, secret = SECRET) => {
    const file = join(folder, "rollcall.deploy.toml");
    const names = ["worker", "database", "bucket", "queue_prefix"].map((field) => `${field} = "${name}"\n`).join("");
    writeFileSync(file, `[${name}]\n${names}url = "${url}"\n`, { flag: "a" });
    writeFileSync(join(folder, `rollcall.${name}.secrets.json`), JSON.stringify({ ROLLCALL_SECRET: secret }), {
      mode: 0o600,
    });
  };
  return {
    ...{ store, rollcall },
    /** A new deployment under this name. `databases`: how many D1 databases it has. */
    async deployment(name: string, secret = SECRET, databases = 1) {
      const platform = await startWorker(secret, [], databases);
      record(platform, name, secret);
      return platform;
    },
    backUp: (name: string) => rollcall("deploy", "backup", "--name", name, "--to", "s3://backups/daily", "--json"),
    restore: (name: string) => rollcall("deploy", "restore", "--name", name, "--from", "s3://backups/daily", "--json"),
    /** Kills the running command after the effect of the first request for which this is true, before its reply. */
    killAt(at: Pick<WorkerPlatform, "afterEffect">, isIt: (request: string) => boolean) {
      at.afterEffect = async (request) => {
        if (!isIt(request) || running === null) return;
        at.afterEffect = async () => undefined;
        running.kill("SIGKILL");
        await new Promise<never>(() => undefined);
      };
    },
    manifest: () => JSON.parse(Buffer.from(store.objects.get("daily/manifest.json") ?? []).toString()),
    read: (file: string) => readFileSync(join(folder, file), "utf8"),
  };
}

/**
 * A paying organisation with a dataset, a secret, a key, a run that has ended, and one whose calls all wait. The model
 * runs until the end of the test.
 */
export async function makeHistory(platform: WorkerPlatform, rows = 4) {
  const key = await platform.found();
  const client = platform.client(key);
  const model = await startArithmeticModel(0);
  onTestFinished(() => model.stop());
  const { organization } = await client.whoAmI();
  await client.organizations.update(organization.id, { billing: "postpaid" });
  await client.ledger.topUp({ organization: organization.id, amount_micros: 50_000_000 });
  await client.secrets.create({ name: "WEATHER_KEY", value: "sunny-and-warm" });
  const endpoint = { base_url: model.url, api_key: "a-key-of-the-endpoint" };
  const asked = { environment: "calculator", model: "arithmetic", endpoint, num_examples: rows };
  const ended = await client.runs.create(asked);
  for await (const _ of client.runs.events(ended.id, { signal: AbortSignal.timeout(WAIT_HANGS_MS) }));
  model.setLatency(10 * 60_000);
  const unfinished = await client.runs.create({ ...asked, num_examples: 8, max_concurrent: 8 });
  await vi.waitUntil(() => model.unanswered() === 8, WAIT);
  return { key, model, ended: ended.id, unfinished: unfinished.id };
}

/** What the API says about everything that has ended. */
export async function seenBy(platform: WorkerPlatform, key: string, ended: string): Promise<Record<string, string>> {
  const requests = platform.requests(key);
  const paths = [
    ...["/whoami", "/organization", "/projects", "/keys", "/secrets", "/datasets", "/audit-log"],
    ...["", "/results", "/rollouts", "/events"].map((path) => `/runs/${ended}${path}`),
  ];
  const read = async (path: string) => [path, await requests.text(path, {})] as const;
  const seen = Object.fromEntries(await Promise.all(paths.map(read)));
  expect(JSON.parse(await requests.text(`/runs/${ended}/audit`, {}))).toMatchObject({ holds: true });
  return seen;
}
