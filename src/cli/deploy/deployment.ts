/** What every command about a deployment needs: its record, its account at Cloudflare, and one form of errors. */

import { CloudflareAccount, listAccounts, type RemoteDatabase } from "../../local/cloudflare/account.ts";
import { CloudflareApi, CloudflareFailed } from "../../local/cloudflare/api.ts";
import { UnreadableConfig } from "../../local/deployment.ts";
import {
  type DeploymentRecord,
  readDeployments,
  readSecrets,
  secretsFile,
  UnreadableDeployments,
} from "../../local/deployment-file.ts";
import { COMMAND } from "../../local/package-root.ts";
import { NotReady } from "../../local/readyz.ts";
import { OperatorClient } from "../backup/operator-client.ts";
import { StepFailed } from "../backup/step-failed.ts";
import { CommandError, EXIT, endBy, usageError } from "../exit.ts";
import { catchInterrupts } from "../interrupt.ts";
import { LOCAL } from "../profiles.ts";

/** The longest name of a deployment; with `-preview` and a queue's own name it is 63 characters, the maximum of a queue. */
const NAME = /^[a-z](?:[a-z0-9-]{0,18}[a-z0-9])?$/;
const PREVIEW = "-preview";

/** The name of the deployment that `--name` and `--preview` mean. */
export function deploymentName(given: string | undefined, preview: boolean): string {
  if (given === undefined) throw usageError("--name: is required: --name prod", "name");
  if (!NAME.test(given) || given === LOCAL || given.endsWith(PREVIEW)) {
    const message = `--name: ${given} must be at most 20 lower-case letters, digits and dashes, begin with a letter, and not end in a dash`;
    throw usageError(`${message}; ${LOCAL} and names that end in ${PREVIEW} are reserved`, "name");
  }
  return preview ? `${given}${PREVIEW}` : given;
}

/** The record of a deployment that was made already. */
export async function recordedDeployment(file: string, name: string): Promise<DeploymentRecord> {
  const records = await readDeployments(file);
  const record = Object.hasOwn(records, name) ? records[name] : undefined;
  if (record !== undefined) return record;
  const known = Object.keys(records);
  const others = known.length > 0 ? `; it has ${known.join(", ")}` : "";
  throw usageError(`--name: ${file} has no deployment ${name}${others}. ${COMMAND} deploy makes one`, "name");
}

/**
 * The account of a deployment: the recorded one, that of --account or CLOUDFLARE_ACCOUNT_ID, or the only one of the
 * login.
 */
export async function accountOf(api: CloudflareApi, chosen: string | undefined): Promise<CloudflareAccount> {
  const named = chosen ?? (process.env["CLOUDFLARE_ACCOUNT_ID"] || undefined);
  if (named !== undefined) return new CloudflareAccount(api, named);
  const accounts = await listAccounts(api);
  const [only, ...more] = accounts;
  if (only === undefined) throw usageError("--account: this login has no Cloudflare account", "account");
  if (more.length === 0) return new CloudflareAccount(api, only.id);
  const list = accounts.map(({ id, name }) => `${id} (${name})`).join(", ");
  throw usageError(`--account: this login has several accounts, choose one: ${list}`, "account");
}

/** The address at which a deployment is called. */
export async function addressOf(
  account: CloudflareAccount,
  { url, domain, worker }: DeploymentRecord,
): Promise<string> {
  if (url !== undefined) return url;
  if (domain !== undefined) return `https://${domain}`;
  const subdomain = await account.findSubdomain();
  if (subdomain !== null) return `https://${worker}.${subdomain}.workers.dev`;
  const where = `https://dash.cloudflare.com/${account.id}/workers-and-pages`;
  throw usageError(`--domain: the account has no workers.dev name: choose one at ${where}, or give a domain`, "domain");
}

/** Whether the database of a deployment has organisations, whose data may still be needed. */
export async function hasOrganization(database: RemoteDatabase): Promise<boolean> {
  if (!(await database.hasTable("organizations"))) return false;
  return (await database.query("SELECT id FROM organizations LIMIT 1")).length > 0;
}

/** Runs a command at Cloudflare that Ctrl-C ends. `goOn` says how to continue; null if there is nothing to continue. */
export async function atCloudflare<T>(
  goOn: string | null,
  work: (api: CloudflareApi, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return await untilInterrupted(goOn, async (signal) => work(await CloudflareApi.open(process.env, signal), signal));
}

/** Runs a command that Ctrl-C ends. `goOn` is asked when it ends early. */
export async function untilInterrupted<T>(
  goOn: string | null | (() => string),
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using interrupt = catchInterrupts();
  const { signal } = interrupt;
  try {
    return await work(signal);
  } catch (thrown) {
    const how = typeof goOn === "function" ? goOn() : goOn;
    if (signal.aborted) throw endBy(signal, how === null ? "" : `; ${how}`);
    throw thrown instanceof Error ? (failureOf(thrown, how) ?? thrown) : thrown;
  }
}

/** A client for the operator of a deployment that was made already. Cloudflare is called only to find its address. */
export async function operatorOf(
  { file, name }: { readonly file: string; readonly name: string },
  signal: AbortSignal,
  base?: string,
): Promise<OperatorClient> {
  const record = await recordedDeployment(file, name);
  const secret = secretOf(file, name);
  const known = record.url ?? (record.domain === undefined ? undefined : `https://${record.domain}`);
  if (known !== undefined) return new OperatorClient(known, secret, signal, base);
  const account = await accountOf(await CloudflareApi.open(process.env, signal), record.account_id);
  return new OperatorClient(await addressOf(account, record), secret, signal, base);
}

/** The ROLLCALL_SECRET of a deployment, from its file. */
export function secretOf(file: string, name: string): string {
  const { ROLLCALL_SECRET: secret } = readSecrets(secretsFile(file, name));
  if (secret !== undefined) return secret;
  const where = secretsFile(file, name);
  throw usageError(`--name: ${where} has no ROLLCALL_SECRET: put it there as {"ROLLCALL_SECRET": "…"}`, "name");
}

function failureOf(thrown: Error, goOn: string | null): CommandError | null {
  if (thrown instanceof UnreadableDeployments) return usageError(thrown.message, "file");
  const message = [thrown.message, ...(goOn === null ? [] : [goOn])].join("\n");
  if (thrown instanceof CloudflareFailed || thrown instanceof NotReady) {
    return new CommandError(EXIT.unreachable, { code: "not_deployed", message, type: "platform_error" });
  }
  if (thrown instanceof StepFailed || thrown instanceof UnreadableConfig) {
    return new CommandError(EXIT.bad, { code: "not_deployed", message, type: "platform_error" });
  }
  return null;
}
