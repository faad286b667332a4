/**
 * Makes or upgrades a deployment. Every step looks at what exists before it changes anything, and what it made is in the
 * deployment's file before the next step begins. So a command that was interrupted, at any point, can be repeated.
 *
 * Invariants. Data is never left without its secret: ROLLCALL_SECRET is on this disk before Cloudflare gets it, and it
 * is not replaced if a Worker or an organisation exists. Migrations are applied before the code that needs them is
 * served.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../contract/errors.ts";
import { bundleAssets } from "../../local/assets.ts";
import { bundleWorker } from "../../local/bundle.ts";
import { checkDeployed } from "../../local/check-deployed.ts";
import { checkDeployment, type Finding } from "../../local/check-deployment.ts";
import type { CloudflareAccount } from "../../local/cloudflare/account.ts";
import type { CloudflareApi } from "../../local/cloudflare/api.ts";
import { neededBindings, readDeployment } from "../../local/deployment.ts";
import {
  deploymentConfig,
  type PlacedDeployment,
  queuesOf,
  type RawConfig,
  readReleased,
  withConfig,
} from "../../local/deployment-config.ts";
import {
  createSecrets,
  type DeploymentRecord,
  type DeploymentSecrets,
  newRecord,
  newSecret,
  readDeployments,
  readSecrets,
  secretsFile,
  uploadFile,
  writeSecrets,
} from "../../local/deployment-file.ts";
import { COMMAND, PACKAGE_ROOT } from "../../local/package-root.ts";
import { drainingSince, waitUntilClosed, waitUntilReady } from "../../local/readyz.ts";
import { callWrangler } from "../../local/wrangler.ts";
import { DRAIN_PATH } from "../../operator/wire.ts";
import { ApiRequestError, RollcallClient } from "../../sdk/client.ts";
import { defined } from "../argument-values.ts";
import { OperatorClient } from "../backup/operator-client.ts";
import { StepFailed } from "../backup/step-failed.ts";
import { usageError } from "../exit.ts";
import { checkCanKeep, configFile, findProfile, keepProfile } from "../profiles.ts";
import { databasesOf, ensureDatabases, hasOrganizations, migrateDatabases } from "./databases.ts";
import { accountOf, addressOf, secretOf } from "./deployment.ts";
import { drain, resume } from "./drain.ts";
import { playSmokeRun, type SmokeRun } from "./smoke-run.ts";

const SECRET = "ROLLCALL_SECRET";
const BOOTSTRAP = "ROLLCALL_BOOTSTRAP_TOKEN";
const CONFLICT = 409;

export interface DeployAsked {
  readonly name: string;
  /** The deployment whose account, place and variables a new one takes over; null for none. */
  readonly like: string | null;
  readonly file: string;
  /** What the command line sets of the record; undefined leaves it. */
  readonly changes: {
    readonly [Name in "account_id" | "location" | "jurisdiction" | "domain" | "url"]?: DeploymentRecord[Name];
  };
  readonly vars: Readonly<Record<string, string>>;
  /** How many D1 databases it has; undefined: as many as before, and a new one has one. */
  readonly databases: number | undefined;
  /** The name of the first organisation; null to make none. */
  readonly organization: string | null;
  /** How long rollouts in flight may take to end before the upgrade, in milliseconds; null: it does not wait for them. */
  readonly drainMs: number | null;
  /** Play a smoke run at the end. */
  readonly smoke: boolean;
  /** How long the deployment may take until it is ready, and the smoke run. */
  readonly waitMs: number;
}

export interface Deployed {
  readonly url: string;
  readonly record: PlacedDeployment;
  readonly queues: readonly string[];
  /** The names of the migrations that were applied now. */
  readonly migrated: readonly string[];
  /** The profile that has the first key; null if this command did not store it. */
  readonly profile: string | null;
  /** The path of the file with ROLLCALL_SECRET; null if the secret is only at Cloudflare. */
  readonly secrets: string | null;
  readonly smoke: SmokeRun["outcome"];
  readonly findings: readonly Finding[];
}

interface Step {
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export async function makeDeployment(api: CloudflareApi, asked: DeployAsked, step: Step): Promise<Deployed> {
  const { file, name } = asked;
  const chosen = await chooseRecord(asked);
  const account = await accountOf(api, chosen.account_id);
  const url = await addressOf(account, chosen);
  const unfounded = readSecrets(secretsFile(file, name))[BOOTSTRAP] !== undefined;
  if (chosen.database_id === undefined || unfounded) checkProfile(name, url);
  await checkDomain(account, chosen);
  const databases = databasesOf(chosen, asked);
  const { released, built } = await build(step);
  const supposed = { ...chosen, account_id: account.id, database_id: randomUUID() };
  await checkConfig(deploymentConfig(released, supposed, built));
  step.log(`${name}: the Worker ${chosen.worker} in the account ${account.id}, at ${url}`);
  const record = await ensureDatabases(account, asked, chosen, databases, step.log);
  await ensureBucket(account, record, step);
  const config = deploymentConfig(released, record, built);
  await ensureQueues(account, queuesOf(config), step);
  const secrets = await prepareSecrets({ account, asked, record, url }, step);
  const operator = await drainOld({ account, asked, record, url }, step);
  const migrated = await migrateDatabases(account, record, built.migrations, step.log);
  await upload(config, { secrets, path: uploadFile(file, name) }, step);
  if (record.domain !== undefined) await account.giveDomain(record.worker, record.domain);
  step.log(`waiting until ${url} is ready`);
  await waitUntilReady(url, { ...step, waitMs: asked.waitMs });
  if (operator !== null) {
    step.log("rollouts start again");
    await resume(operator);
  }
  // Right after the end of a drain /readyz may still show it.
  const draining = operator === null ? await drainingSince(url, step.signal) : null;
  const profile = await storeFirstKey({ account, asked, record, url }, step);
  const key = findProfile(configFile(process.env), name);
  const apiKey = key?.platform === url ? key.key : undefined;
  const smoke =
    draining === null ? await smokeRun({ account, asked, record, url }, apiKey, step) : drained(name, draining);
  const findings = [...(await checkDeployed(url, apiKey)), ...smoke.findings];
  const kept = secretsFile(file, name);
  const hasSecret = readSecrets(kept)[SECRET] !== undefined;
  const secretsAt = hasSecret ? kept : null;
  return {
    ...{ url, record, queues: queuesOf(config), migrated, profile, secrets: secretsAt },
    ...{ smoke: smoke.outcome, findings },
  };
}

/** Built before anything is created: an error in the sources changes nothing at Cloudflare. */
async function build({ signal, log }: Step) {
  log("building the Worker and the page");
  const [released, bundle, page] = await Promise.all([
    readReleased(PACKAGE_ROOT),
    bundleWorker(PACKAGE_ROOT, signal),
    bundleAssets(PACKAGE_ROOT, log),
  ]);
  return { released, built: { bundle, page, migrations: join(PACKAGE_ROOT, "migrations") } };
}

/** The record of the deployment with the changes of the command line. Throws if one of them is not possible any more. */
async function chooseRecord({ file, name, like, changes, vars }: DeployAsked): Promise<DeploymentRecord> {
  const records = await readDeployments(file);
  const before = records[name];
  for (const [flag, field] of [
    ["account", "account_id"],
    ["location", "location"],
    ["jurisdiction", "jurisdiction"],
  ] as const) {
    const [now, then] = [changes[field], before?.[field]];
    if (before?.database_id === undefined || now === undefined || now === then) continue;
    throw usageError(`--${flag}: ${name} is in ${then ?? "another place"} and cannot be moved: use another name`, flag);
  }
  const { account_id, location, jurisdiction, vars: others = {} } = (like === null ? undefined : records[like]) ?? {};
  const fresh = { ...newRecord(name), ...defined({ account_id, location, jurisdiction }), vars: others };
  const record = { ...(before ?? fresh), ...defined(changes) };
  if (record.location !== undefined && record.jurisdiction !== undefined) {
    throw usageError("--jurisdiction: cannot be combined with --location", "jurisdiction");
  }
  return { ...record, vars: { ...record.vars, ...vars } };
}

async function ensureBucket(account: CloudflareAccount, record: DeploymentRecord, { log }: Step): Promise<void> {
  if (await account.hasBucket(record.bucket, record)) return;
  log(`creating the bucket ${record.bucket}`);
  await account.createBucket(record.bucket, record);
}

async function ensureQueues(account: CloudflareAccount, names: readonly string[], { log }: Step): Promise<void> {
  const existing = await account.listQueues();
  const missing = names.filter((name) => !existing.has(name));
  if (missing.length > 0) log(`creating ${missing.length} queues`);
  for (const name of missing) await account.createQueue(name);
}

interface Platform {
  readonly account: CloudflareAccount;
  readonly asked: DeployAsked;
  readonly record: PlacedDeployment;
  readonly url: string;
}

/**
 * The secrets that this upload must bring: those of the deployment's file that the Worker lacks, and the bootstrap token
 * as long as the first key is not stored. A missing ROLLCALL_SECRET is made, and is on disk before it is used.
 */
async function prepareSecrets(platform: Platform, step: Step): Promise<DeploymentSecrets> {
  const { account, asked, record } = platform;
  const { log } = step;
  const file = secretsFile(asked.file, asked.name);
  const held = (await account.secretsOf(record.worker)) ?? [];
  const [existed, before] = [existsSync(file), readSecrets(file)];
  const founded = await hasOrganizations(account, record);
  const isNew = !held.includes(SECRET) && before[SECRET] === undefined;
  if (isNew && founded) {
    throw new StepFailed(
      `the database ${record.database} has data of an organisation, and the ${SECRET} that it was written with is not in ${file}: put it there as {"${SECRET}": "…"}`,
    );
  }
  const founding = asked.organization !== null && (!founded || before[BOOTSTRAP] !== undefined);
  const secrets = {
    ...before,
    ...(isNew && { [SECRET]: newSecret() }),
    ...(founding && { [BOOTSTRAP]: before[BOOTSTRAP] ?? newSecret() }),
  };
  // Of two deploys at the same time, only one may make the secret.
  if (isNew && !existed) {
    if (!createSecrets(file, secrets)) return await prepareSecrets(platform, step);
  } else if (JSON.stringify(secrets) !== JSON.stringify(before)) writeSecrets(file, secrets);
  if (isNew) {
    log(`${SECRET} is in ${file}: keep a copy, since Cloudflare never shows it and no stored key opens without it`);
  }
  return Object.fromEntries(Object.entries(secrets).filter(([name]) => name === BOOTSTRAP || !held.includes(name)));
}

/** The first key must not replace that of another platform, and must not get lost because it cannot be stored. */
function checkProfile(name: string, url: string): void {
  const file = configFile(process.env);
  const profile = findProfile(file, name);
  if (profile !== undefined && profile.platform !== url) {
    const message = `--name: the profile ${name} is of ${profile.platform}, and the first key would replace it`;
    throw usageError(`${message}: ${COMMAND} logout --profile ${name}, or use another name`, "name");
  }
  checkCanKeep(file);
}

/** A domain is never taken away from another Worker, such as that of another deployment. */
async function checkDomain(account: CloudflareAccount, { domain, worker }: DeploymentRecord): Promise<void> {
  const other = domain === undefined ? null : await account.findWorkerAt(domain);
  if (other === null || other === worker) return;
  throw usageError(`--domain: the Worker ${other} has ${domain}: remove it there, or use another domain`, "domain");
}

/** The variables of the deployment are checked like those of a file made by hand. */
async function checkConfig(config: RawConfig): Promise<void> {
  const released = await readDeployment(join(PACKAGE_ROOT, "wrangler.toml"));
  // The bundle is made of the release's own entry.
  const deployed = { ...(await withConfig(config, ({ file }) => readDeployment(file))), main: released.main };
  const findings = checkDeployment({ deployed, released, needed: neededBindings(PACKAGE_ROOT) });
  const errors = findings.filter(({ level }) => level === "error");
  if (errors.length === 0) return;
  throw new StepFailed(errors.map(({ what, fix }) => `${what} (${fix})`).join("\n"));
}

interface Uploaded {
  readonly secrets: DeploymentSecrets;
  /** The file by which wrangler gets them. What a killed command left there is replaced. */
  readonly path: string;
}

async function upload(config: RawConfig, { secrets, path }: Uploaded, { signal, log }: Step): Promise<void> {
  log("uploading the Worker and the page");
  const some = Object.keys(secrets).length > 0;
  if (some) writeSecrets(path, secrets);
  try {
    await withConfig(config, async ({ folder, file }) => {
      const words = ["deploy", "--config", file, ...(some ? ["--secrets-file", path] : [])];
      await callWrangler(words, { folder, signal });
    });
  } catch (thrown) {
    signal.throwIfAborted();
    throw new StepFailed(`wrangler deploy failed:\n${messageOf(thrown)}`, { cause: thrown });
  } finally {
    rmSync(path, { force: true });
  }
}

/**
 * Creates the first organisation and stores its key as a profile, then removes the bootstrap token. Returns the name of
 * the profile, or null if there was nothing to store.
 */
async function storeFirstKey({ account, asked, record, url }: Platform, step: Step): Promise<string | null> {
  const { name, organization } = asked;
  const file = secretsFile(asked.file, name);
  const { [BOOTSTRAP]: token, ...others } = readSecrets(file);
  const key = token === undefined || organization === null ? null : await firstKey({ token, url, organization }, step);
  if (key !== null) {
    keepProfile(configFile(process.env), name, { platform: url, key, project: null });
    step.log(`the first key is stored as the profile ${name}`);
  }
  const held = await account.secretsOf(record.worker);
  if (held?.includes(BOOTSTRAP)) {
    step.log(`removing ${BOOTSTRAP}`);
    await account.deleteSecret(record.worker, BOOTSTRAP);
    await waitUntilClosed(url, { ...step, waitMs: asked.waitMs });
  }
  if (token !== undefined) writeSecrets(file, others);
  return key === null ? null : name;
}

/** Drains what is deployed. Returns its operator, who ends the drain after the upgrade; null if nothing is drained. */
async function drainOld({ account, asked, record, url }: Platform, step: Step): Promise<OperatorClient | null> {
  if (asked.drainMs === null || (await account.secretsOf(record.worker)) === null) return null;
  const operator = new OperatorClient(url, secretOf(asked.file, asked.name), step.signal, DRAIN_PATH);
  step.log("draining: no rollout starts, and those in flight end");
  await drain(operator, AbortSignal.timeout(asked.drainMs), step);
  return operator;
}

/** A smoke run would wait until the drain ends. */
function drained(name: string, since: Date): SmokeRun {
  const what = `the deployment is draining since ${since.toISOString()}: no rollout starts`;
  const fix = `${COMMAND} deploy resume --name ${name}`;
  return { outcome: "skipped", findings: [{ level: "warning", what, fix }] };
}

/** Without a key of the deployment nothing can be played: `checkDeployed` reports that. */
async function smokeRun({ asked, record, url }: Platform, apiKey: string | undefined, step: Step): Promise<SmokeRun> {
  if (!asked.smoke || apiKey === undefined) return { outcome: "skipped", findings: [] };
  const { worker, queue_prefix } = record;
  const late = AbortSignal.timeout(asked.waitMs);
  return await playSmokeRun({ url, key: apiKey, worker, queue_prefix, late }, step);
}

/** Null if the deployment already has an organisation with another key. A repeat returns the same key. */
async function firstKey(
  { token, url, organization }: { readonly token: string; readonly url: string; readonly organization: string },
  { signal, log }: Step,
): Promise<string | null> {
  const client = new RollcallClient({ baseUrl: url, apiKey: token });
  // Only a holder of the token can compute it.
  const idempotencyKey = createHash("sha256").update(`first key ${token}`).digest("hex");
  log(`creating the organisation ${organization}`);
  try {
    const { key } = await client.organizations.bootstrap({ name: organization }, { idempotencyKey, signal });
    return key.key;
  } catch (thrown) {
    if (!(thrown instanceof ApiRequestError && thrown.status === CONFLICT)) throw thrown;
    log(`an organisation exists already: log in with one of its keys: ${COMMAND} login --platform ${url}`);
    return null;
  }
}
