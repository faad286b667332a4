/**
 * The account test: deploys a preview of the platform with the code of `rollcall deploy` and the probe Worker, measures
 * the open questions, and deletes everything, also after an error or Ctrl-C.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { destroyDeployment } from "../../../src/cli/deploy/destroy.ts";
import { makeDeployment } from "../../../src/cli/deploy/make.ts";
import { findProfile } from "../../../src/cli/profiles.ts";
import { CloudflareAccount } from "../../../src/local/cloudflare/account.ts";
import { CloudflareApi } from "../../../src/local/cloudflare/api.ts";
import { readReleased } from "../../../src/local/deployment-config.ts";
import { DEPLOYMENT_FILE, readDeployments } from "../../../src/local/deployment-file.ts";
import { PACKAGE_ROOT } from "../../../src/local/package-root.ts";
import { RollcallClient } from "../../../src/sdk/client.ts";
import { type Bench, ProbeWorker, type Sizes } from "./bench.ts";
import { deleteProbe, deployProbe, probeNames, waitForProbe } from "./deploy-probe.ts";
import { FORCED_DELETE, type Question, WAVES } from "./questions.ts";
import type { Answered, Report } from "./report.ts";

export interface AccountTest {
  readonly name: string;
  readonly accountId: string;
  /** Of the deployment's file, its secrets and the profile of its key. */
  readonly folder: string;
  readonly sizes: Sizes;
  /** Addresses if they are not those below workers.dev: of the platform, the probe Worker, and a server elsewhere. */
  readonly url: string | undefined;
  readonly probeUrl: string | undefined;
  readonly peer: string | undefined;
  readonly keep: boolean;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

const READY_WITHIN_MS = 300_000;
const DELETED_WITHIN_MS = 300_000;
/** Pages of 500 objects of a bucket. */
const MOST_PAGES = 100;

/** Never throws after the first resource may exist: the reason is in the report. */
export async function runAccountTest(asked: AccountTest): Promise<Report> {
  const released = await readReleased(PACKAGE_ROOT);
  const startedAt = new Date();
  const answers: Answered[] = [];
  let [bench, ended]: [Bench | null, string | null] = [null, null];
  try {
    bench = await deployAll(asked, released);
    for (const questions of WAVES) {
      asked.log(`measuring ${questions.map(({ id }) => id).join(", ")}`);
      answers.push(...(await Promise.all(questions.map((question) => answer(question, bench as Bench)))));
      asked.signal.throwIfAborted();
    }
  } catch (thrown) {
    ended = asked.signal.aborted ? "it was interrupted" : String(thrown instanceof Error ? thrown.message : thrown);
  }
  const left = asked.keep ? null : await deleteAll(asked, bench, answers);
  const local = asked.probeUrl !== undefined && new URL(asked.probeUrl).hostname === "127.0.0.1";
  return {
    name: asked.name,
    target: local ? "local" : "account",
    account_id: asked.accountId,
    release: (await import("../../../package.json", { with: { type: "json" } })).default.version,
    compatibility_date: released.compatibility_date ?? "",
    peer: asked.peer ?? "the probe Worker itself, by its public address",
    started_at: startedAt.toISOString(),
    minutes: Math.round((Date.now() - startedAt.getTime()) / 6000) / 10,
    sizes: asked.sizes,
    ...{ answers, left, ended },
  };
}

async function deployAll(asked: AccountTest, released: Awaited<ReturnType<typeof readReleased>>): Promise<Bench> {
  const { name, accountId, folder, sizes, signal, log } = asked;
  const file = join(folder, DEPLOYMENT_FILE);
  const api = await CloudflareApi.open(process.env, signal);
  const changes = {
    account_id: accountId,
    url: asked.url,
    location: undefined,
    jurisdiction: undefined,
    domain: undefined,
  };
  const product = {
    name,
    file,
    like: null,
    changes,
    vars: {},
    databases: undefined,
    organization: name,
    drainMs: null,
    smoke: false,
    waitMs: READY_WITHIN_MS,
  };
  const { record, url } = await makeDeployment(api, product, { signal, log });
  log("deploying the probe Worker");
  const account = new CloudflareAccount(api, accountId);
  const names = probeNames(name);
  const secrets = probeSecrets(folder);
  const { token, databaseId, upload } = await deployProbe({
    ...{ account, released, names, secrets, signal },
    productBucket: record.bucket,
  });
  const probeUrl = asked.probeUrl ?? `https://${names.worker}.${await account.findSubdomain()}.workers.dev`;
  await waitForProbe(probeUrl, token, { waitMs: READY_WITHIN_MS, signal });
  const key = findProfile(join(folder, "config.json"), name)?.key ?? "";
  return {
    ...{ sizes, api, account, released, signal },
    product: { record, client: new RollcallClient({ baseUrl: url, apiKey: key }) },
    probe: new ProbeWorker(probeUrl, token, signal),
    peer: { origin: asked.peer ?? probeUrl, isWorker: asked.peer === undefined },
    redeploy: upload,
    names: { bucket: names.bucket, databaseId },
    graphql: (query, variables) => api.graphql(query, variables),
  };
}

async function answer({ id, asks, assumes, measure, judge }: Question, bench: Bench): Promise<Answered> {
  const question = { id, asks, assumes };
  let raw: unknown = null;
  try {
    raw = await measure(bench);
    return { ...question, ...judge(raw, bench), raw };
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return { ...question, verdict: "undecided", says: `The measurement failed: ${why}`, raw };
  }
}

/** Returns what is left. Also deletes what an interrupted deployment had made; `bench` is null if that did not end. */
async function deleteAll(asked: AccountTest, bench: Bench | null, answers: Answered[]): Promise<string[]> {
  asked.log("deleting everything");
  const signal = AbortSignal.timeout(DELETED_WITHIN_MS);
  try {
    const { left, question } = await deleteTest(asked, signal, bench?.probe ?? null);
    if (bench !== null) answers.push(await answer({ ...FORCED_DELETE, measure: async () => question }, bench));
    return left;
  } catch (thrown) {
    return [`unknown, the deletion failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`];
  }
}

type Deleting = Pick<AccountTest, "name" | "accountId" | "folder" | "log">;

/** Deletes a test's resources, also those of an earlier process. What does not exist is passed over. */
export async function deleteTest(asked: Deleting, signal: AbortSignal, probe: ProbeWorker | null) {
  const { name, accountId, folder, log } = asked;
  const api = await CloudflareApi.open(process.env, signal);
  const account = new CloudflareAccount(api, accountId);
  const file = join(folder, DEPLOYMENT_FILE);
  const made = existsSync(file) && Object.hasOwn(await readDeployments(file), name);
  const left: string[] = [];
  if (probe !== null)
    await emptyBuckets(new ProbeWorker(probe.url, probe.token, signal)).catch((thrown) => log(String(thrown)));
  const { worker, queue, left: ofProbe } = await deleteProbe(account, probeNames(name), probeSecrets(folder));
  left.push(...ofProbe);
  if (made) left.push(...(await destroyDeployment(api, { file, name, data: true }, log)).kept);
  return { left, question: { worker, queue } };
}

/** R2 deletes no bucket with objects. */
async function emptyBuckets(probe: ProbeWorker): Promise<void> {
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const reply = await probe.send("/empty", { method: "POST" });
    const { deleted } = (await reply.json()) as { deleted?: number };
    if (deleted === undefined) throw new Error(`the buckets were not emptied: ${reply.status}`);
    if (deleted === 0) return;
  }
}

function probeSecrets(folder: string): string {
  return join(folder, "rollcall.probe.secrets.json");
}
