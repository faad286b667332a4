/** `rollcall deploy`: makes, upgrades, shows, checks and deletes deployments on Cloudflare. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Finding } from "../../local/check-deployment.ts";
import { DEPLOYMENT_FILE, Domain, JURISDICTIONS, LOCATIONS } from "../../local/deployment-file.ts";
import { COMMAND, PACKAGE_ROOT } from "../../local/package-root.ts";
import { WORKER_BYTES } from "../../local/worker-bytes.ts";
import { urlOf } from "../argument-values.ts";
import { type CommandLine, command, type Flags } from "../command-line.ts";
import type { Deployed } from "../deploy/make.ts";
import type { DeploymentStatus } from "../deploy/status.ts";
import { EXIT, usageError } from "../exit.ts";
import { safeDetails } from "../terminal/table.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { safeLine } from "../terminal/text.ts";
import { BACKUP_COMMANDS } from "./deploy-backup.ts";
import { REPAIR } from "./deploy-repair.ts";

const CONFIG = "wrangler.toml";
const MARKS: Readonly<Record<Finding["level"], string>> = { error: "✗", warning: "!" };

const CHECK = command({
  name: "deploy check",
  help: "check a deployment: its wrangler.toml, its bundle and its URL",
  more: `Nothing is deployed, and Cloudflare is not called. docs/deploy.md leads from an empty account to the first run.`,
  flags: {
    config: { value: "FILE", help: `the wrangler.toml to check; default ${CONFIG}` },
    bundle: { help: "bundle the Worker, like wrangler deploy --dry-run, and check its size" },
    url: { value: "URL", help: "also check the platform at this URL, with the key in ROLLCALL_API_KEY" },
    json: { help: "exactly one JSON object on stdout: {ok, findings, bundle_bytes}" },
  },
  async run(line) {
    line.none();
    const file = line.text("config") ?? CONFIG;
    const url = urlOf("url", line.text("url"));
    if (url !== undefined && !/^https?:/i.test(url))
      throw usageError(`--url: ${url} is not an http or https URL`, "url");
    if (!existsSync(file)) throw usageError(`--config: the file ${file} does not exist`, "config");
    const term = terminal(line.on("json"));
    const bundle = line.on("bundle") ? await checkBundle(file) : { findings: [], bytes: null };
    const findings = [
      ...(await checkConfig(file)),
      ...bundle.findings,
      ...(url === undefined ? [] : await checkPlatform(url)),
    ];
    const ok = findings.every(({ level }) => level !== "error");
    term.print(reportText(file, findings, bundle.bytes));
    if (line.on("json")) printJson({ ok, findings, bundle_bytes: bundle.bytes });
    return ok ? EXIT.good : EXIT.bad;
  },
});

/** Loads the reader of wrangler.toml only here: wrangler takes more than a second to load. */
async function checkConfig(file: string): Promise<Finding[]> {
  const { neededBindings, readDeployment, UnreadableConfig } = await import("../../local/deployment.ts");
  const { checkDeployment } = await import("../../local/check-deployment.ts");
  try {
    const [deployed, released] = [await readDeployment(file), await readDeployment(join(PACKAGE_ROOT, CONFIG))];
    return checkDeployment({ deployed, released, needed: neededBindings(PACKAGE_ROOT) });
  } catch (thrown) {
    if (!(thrown instanceof UnreadableConfig)) throw thrown;
    return [
      {
        level: "error",
        what: `wrangler cannot read it: ${thrown.message}`,
        fix: "start with the wrangler.toml of this release",
      },
    ];
  }
}

async function checkBundle(file: string): Promise<{ findings: Finding[]; bytes: number | null }> {
  const { bundledBytes } = await import("../../local/deployment.ts");
  let bytes: number;
  try {
    bytes = await bundledBytes(file);
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    return {
      findings: [{ level: "error", what: thrown.message, fix: "fix the error that wrangler reports" }],
      bytes: null,
    };
  }
  if (bytes <= WORKER_BYTES.paid) return { findings: [], bytes };
  const what = `the Worker is ${sizeText(bytes)} gzipped, but Cloudflare's limit is 10 MiB`;
  return { findings: [{ level: "error", what, fix: "remove environments or their imports" }], bytes };
}

async function checkPlatform(url: string): Promise<Finding[]> {
  const { checkDeployed } = await import("../../local/check-deployed.ts");
  return checkDeployed(url, process.env["ROLLCALL_API_KEY"]);
}

function reportText(file: string, findings: readonly Finding[], bytes: number | null): string {
  const lines = findings.flatMap(({ level, what, fix }) => [
    `${MARKS[level]} ${safeLine(what)}`,
    `    ${safeLine(fix)}`,
  ]);
  return [
    ...lines,
    ...(lines.length === 0 ? [] : [""]),
    ...(bytes === null ? [] : [`The Worker is ${sizeText(bytes)} gzipped; the limit of a paid plan is 10 MiB.`]),
    `Secrets are not in ${file}: list them with wrangler secret list --config ${file}.`,
    conclusion(findings),
  ].join("\n");
}

function conclusion(findings: readonly Finding[]): string {
  const errors = findings.filter(({ level }) => level === "error").length;
  if (errors > 0) return `not ready to deploy: ${errors} of ${findings.length} findings are errors`;
  return findings.length > 0 ? `ready to deploy, with ${findings.length} warnings` : "ready to deploy";
}

function sizeText(bytes: number): string {
  return `${(bytes / 1000).toFixed(0)} kB`;
}

const RECORD_FLAGS = {
  name: { value: "NAME", help: "the deployment; also the name of its profile: prod" },
  preview: { help: "the preview of this deployment: NAME-preview, with a Worker and data of its own" },
  file: { value: "FILE", help: `the file with the deployments; default ${DEPLOYMENT_FILE}` },
} as const satisfies Flags;

/** Loads the code that calls Cloudflare only when it is needed. */
function loadDeployment() {
  return import("../deploy/deployment.ts");
}

async function named(line: CommandLine<keyof typeof RECORD_FLAGS>) {
  const { deploymentName } = await loadDeployment();
  return {
    file: line.text("file") ?? DEPLOYMENT_FILE,
    name: deploymentName(line.text("name"), line.on("preview")),
  };
}

/** How to continue a command that changes a deployment, after an error or an interruption. */
const AGAIN = "the same command continues where this one stopped";

const DEPLOY = command({
  name: "deploy",
  help: "make a deployment on Cloudflare, or upgrade it to this release",
  more: `The command creates the D1 databases, the R2 bucket and the queues that are missing, migrates the databases, deploys the
Worker with wrangler, waits until it is ready, stores the first key as a profile, and plays a smoke run of four rollouts with
a model inside the deployment. The same command upgrades, and continues after an interruption. It uses the login of wrangler (npx wrangler login) or CLOUDFLARE_API_TOKEN.
Names and ids are in ${DEPLOYMENT_FILE}, which the command writes. Secrets are in rollcall.NAME.secrets.json next to it.
Further commands: deploy status, deploy resume, deploy backup, deploy restore, deploy repair, deploy destroy, deploy check.`,
  flags: {
    ...RECORD_FLAGS,
    account: { value: "ID", help: "the Cloudflare account, if the login has several; default CLOUDFLARE_ACCOUNT_ID" },
    location: { value: "WHERE", choices: LOCATIONS, help: "where data is stored; cannot be changed later" },
    jurisdiction: { value: "WHERE", choices: JURISDICTIONS, help: "which D1 and R2 data never leaves" },
    databases: { value: "N", help: "how many D1 databases it has, 1 to 32; more can be added later, none removed" },
    domain: { value: "HOST", help: "an address in a zone of the account: rollcall.example.com; default workers.dev" },
    url: { value: "URL", help: "the address at which to call the deployment, if a proxy is in front of it" },
    var: { value: "NAME=VALUE", repeatable: true, help: "set a variable of the Worker" },
    organization: { value: "NAME", help: "name of the first organisation; default the name of the deployment" },
    empty: { help: "make no organisation, so that deploy restore can fill the deployment" },
    drain: { help: "before an upgrade start no rollouts, and wait until those in flight have ended" },
    "drain-wait": { value: "S", help: "with --drain: seconds to wait for rollouts in flight; default 1800" },
    "no-smoke": { help: "play no smoke run at the end" },
    wait: { value: "S", help: "seconds to wait until the deployment is ready, and for the smoke run; default 300" },
    json: { help: "exactly one JSON object on stdout" },
  },
  async run(line) {
    line.none();
    const deployment = await named(line);
    const asked = {
      ...deployment,
      like: line.on("preview") ? (line.text("name") ?? null) : null,
      changes: {
        account_id: line.text("account"),
        location: LOCATIONS.find((location) => location === line.text("location")),
        jurisdiction: JURISDICTIONS.find((jurisdiction) => jurisdiction === line.text("jurisdiction")),
        domain: domainFlag(line.text("domain")),
        url: addressFlag(line.text("url")),
      },
      vars: line.pairs("var"),
      databases: line.count("databases", 1),
      organization: line.on("empty") ? null : (line.text("organization") ?? deployment.name),
      drainMs: drainOf(line.on("drain"), line.count("drain-wait", 1)),
      smoke: !line.on("no-smoke"),
      waitMs: (line.count("wait", 1) ?? WAIT_S) * 1000,
    };
    const term = terminal(line.on("json"));
    const { atCloudflare } = await loadDeployment();
    const { makeDeployment } = await import("../deploy/make.ts");
    const deployed = await atCloudflare(line.on("drain") ? DRAINING : AGAIN, (api, signal) =>
      makeDeployment(api, asked, { signal, log: term.log }),
    );
    term.print(deployedText(asked.name, deployed));
    if (line.on("json")) printJson(deployedView(asked.name, deployed));
    return deployed.findings.every(({ level }) => level !== "error") ? EXIT.good : EXIT.bad;
  },
});

const WAIT_S = 300;
/** A model call takes ten minutes at most. */
const DRAIN_WAIT_S = 1800;

/** How to continue a command that may have begun a drain. */
const DRAINING = `the same command continues where this one stopped; if it had begun to drain, ${COMMAND} deploy resume lets rollouts start again`;

function drainOf(drain: boolean, seconds: number | undefined): number | null {
  if (!drain && seconds !== undefined) throw usageError("--drain-wait: needs --drain", "drain-wait");
  return drain ? (seconds ?? DRAIN_WAIT_S) * 1000 : null;
}

function domainFlag(text: string | undefined): string | undefined {
  const { error } = Domain.optional().safeParse(text);
  if (error === undefined) return text;
  throw usageError(`--domain: ${text} ${error.issues[0]?.message}`, "domain");
}

function addressFlag(text: string | undefined): string | undefined {
  const url = urlOf("url", text);
  if (url === undefined || /^https?:/i.test(url)) return url;
  throw usageError(`--url: ${url} is not an http or https URL`, "url");
}

function deployedView(name: string, { record, ...deployed }: Deployed) {
  const { account_id, worker, database, database_id, more_database_ids = [], bucket } = record;
  return { name, ...deployed, account_id, worker, database, database_id, more_database_ids, bucket };
}

function deployedText(name: string, { url, profile, secrets, smoke, findings }: Deployed): string {
  return [
    ...findings.flatMap(({ level, what, fix }) => [`${MARKS[level]} ${safeLine(what)}`, `    ${safeLine(fix)}`]),
    safeDetails({
      deployed: name,
      page: url,
      smoke: smoke === "good" ? "4 rollouts were played and scored" : smoke,
      profile: profile === null ? null : `${profile}: ${COMMAND} whoami --profile ${profile}`,
      secrets: secrets === null ? "only at Cloudflare" : `${secrets}: keep a copy`,
    }),
  ].join("\n");
}

const STATUS = command({
  name: "deploy status",
  reads: true,
  help: "show what exists of a deployment: versions, schema, resources, address",
  flags: { ...RECORD_FLAGS, json: { help: "exactly one JSON object on stdout" } },
  async run(line) {
    line.none();
    const deployment = await named(line);
    const { atCloudflare } = await loadDeployment();
    const { readStatus } = await import("../deploy/status.ts");
    const status = await atCloudflare(null, (api, signal) => readStatus(api, deployment, signal));
    if (line.on("json")) printJson(status);
    else terminal(false).print(statusText(status));
    return status.readiness === "ready" ? EXIT.good : EXIT.bad;
  },
});

function statusText({ worker, database, schema, bucket, queues, ...status }: DeploymentStatus): string {
  const more = status.more_databases.map(({ name, applied }) => `${name} (${applied ?? "empty"})`);
  const behind = schema.applied === schema.release ? "" : `, and this release has ${schema.release}`;
  return safeDetails({
    deployment: status.name,
    address: status.url,
    state: status.readiness,
    draining: status.draining_since && `since ${status.draining_since}: ${COMMAND} deploy resume lets rollouts start`,
    account: status.account_id,
    worker: `${worker.name}: ${worker.version === null ? "not deployed" : `${worker.version} since ${worker.since}`}`,
    secrets: status.secrets.join(", ") || "none",
    database: `${database.name}: ${database.id ?? "does not exist"}`,
    schema: `${schema.applied ?? "empty"}${behind}`,
    "more databases": more.length === 0 ? null : more.join(", "),
    bucket: `${bucket.name}${bucket.exists ? "" : ": does not exist"}`,
    queues: `${queues.existing.length}${queues.missing.length === 0 ? "" : `, missing: ${queues.missing.join(", ")}`}`,
    release: status.release,
  });
}

const RESUME = command({
  name: "deploy resume",
  help: "end a drain: rollouts of a deployment start again",
  more: `For a deployment that rollcall deploy --drain has left draining, for example after Ctrl-C; deploy status shows that. If it
is not draining, nothing changes. ROLLCALL_SECRET is read from rollcall.NAME.secrets.json.`,
  flags: { ...RECORD_FLAGS, json: { help: "exactly one JSON object on stdout: {name}" } },
  async run(line) {
    line.none();
    const deployment = await named(line);
    const { operatorOf, untilInterrupted } = await loadDeployment();
    const { resume } = await import("../deploy/drain.ts");
    const { DRAIN_PATH } = await import("../../operator/wire.ts");
    await untilInterrupted(AGAIN, async (signal) => resume(await operatorOf(deployment, signal, DRAIN_PATH)));
    terminal(line.on("json")).print(`${deployment.name} is not draining: rollouts start`);
    if (line.on("json")) printJson({ name: deployment.name });
    return EXIT.good;
  },
});

const DESTROY = command({
  name: "deploy destroy",
  help: "delete a deployment: its Worker with all objects, its queues, and its data",
  more: `A deployment that has organisations is deleted only with --data: its runs are in the objects of the Worker. R2 deletes the
objects of a bucket within a day or two; the command then deletes the bucket when it is repeated.`,
  flags: {
    ...RECORD_FLAGS,
    yes: { value: "NAME", help: "the name of the deployment, as confirmation" },
    data: { help: "delete data: organisations, runs, datasets" },
    json: { help: "exactly one JSON object on stdout: {name, kept}" },
  },
  async run(line) {
    line.none();
    const asked = { ...(await named(line)), data: line.on("data") };
    if (line.text("yes") !== asked.name) {
      throw usageError(`--yes: is required, with the name of the deployment: --yes ${asked.name}`, "yes");
    }
    const term = terminal(line.on("json"));
    const { atCloudflare } = await loadDeployment();
    const { destroyDeployment } = await import("../deploy/destroy.ts");
    const destroyed = await atCloudflare(AGAIN, (api) => destroyDeployment(api, asked, term.log));
    const { name, kept } = destroyed;
    term.print(kept.length === 0 ? `${name} is deleted` : [`${name} is not deleted completely:`, ...kept].join("\n"));
    if (line.on("json")) printJson(destroyed);
    return kept.length === 0 ? EXIT.good : EXIT.bad;
  },
});

/** `deploy` is last, because the words of each other command begin with its name. */
export const DEPLOY_COMMANDS = [STATUS, CHECK, RESUME, ...BACKUP_COMMANDS, REPAIR, DESTROY, DEPLOY] as const;
