/**
 * `rollcall.deploy.toml`: names, ids and variables of deployments, one table each. It has no secrets. The secrets of a
 * deployment are next to it, in a file that only its owner may read and that git ignores.
 */
import { randomBytes } from "node:crypto";
import { existsSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import * as z from "zod";
import { createFile, readIfThere, replaceFile } from "./directory-lock.ts";

export const DEPLOYMENT_FILE = "rollcall.deploy.toml";

/** The locations of Cloudflare for which D1 and R2 take a hint. */
export const LOCATIONS = ["weur", "eeur", "wnam", "enam", "apac", "oc"] as const;
export const JURISDICTIONS = ["eu"] as const;

const Name = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be lower-case letters, digits and dashes");

/** A host name without a scheme, a port or a path. */
export const Domain = z
  .string()
  .regex(
    /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/,
    "must be a host name: rollcall.example.com",
  );

const Record = z.strictObject({
  account_id: z.string().optional(),
  worker: Name,
  database: Name,
  database_id: z.string().optional(),
  /** Ids of the D1 databases besides the first one, in the order of their numbers. */
  more_database_ids: z.array(z.string()).optional(),
  bucket: Name,
  /** What the names of its queues begin with. */
  queue_prefix: z.string(),
  location: z.enum(LOCATIONS).optional(),
  jurisdiction: z.enum(JURISDICTIONS).optional(),
  domain: Domain.optional(),
  /** Its address, if that is neither the domain nor the Worker's name below workers.dev. */
  url: z.string().optional(),
  /** Values that differ from `[vars]` of the release's wrangler.toml. */
  vars: z.record(z.string().regex(/^\w+$/, "must be letters, digits and underscores"), z.string()).default({}),
});
export type DeploymentRecord = z.output<typeof Record>;
const Records = z.record(z.string(), Record);

/** The file is not a list of deployments. The message says where it is wrong. */
export class UnreadableDeployments extends Error {
  override readonly name = "UnreadableDeployments";
}

const HEAD = `# Deployments made by rollcall deploy, which writes this file. It has no secrets: keep it in git.
`;

/** The deployments of the file by name; empty without a file. Throws UnreadableDeployments. */
export async function readDeployments(file: string): Promise<Readonly<Record<string, DeploymentRecord>>> {
  if (!existsSync(file)) return {};
  const { experimental_readRawConfig: readToml } = await import("wrangler");
  try {
    return Records.parse(readToml({ config: resolve(file) }).rawConfig);
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    const [issue] = thrown instanceof z.ZodError ? thrown.issues : [];
    const why = issue === undefined ? thrown.message : `${issue.path.join(".")}: ${issue.message}`;
    throw new UnreadableDeployments(`${file}: ${why}`, { cause: thrown });
  }
}

/** Replaces the record of one deployment, or removes it. */
export async function writeDeployment(file: string, name: string, record: DeploymentRecord | null): Promise<void> {
  const { [name]: _before, ...others } = await readDeployments(file);
  const records = Object.entries(record === null ? others : { ...others, [name]: record });
  if (records.length === 0) return rmSync(file, { force: true });
  replaceFile(file, [HEAD, ...records.map(([title, fields]) => tableOf(title, fields))].join("\n"));
}

/** The fields in the order of their definition, so that the same deployment is always the same text. */
function tableOf(title: string, { vars, ...fields }: DeploymentRecord): string {
  const values = new Map<string, Value>(Object.entries(fields));
  const known = Object.keys(Record.shape).map((key) => [key, values.get(key)] as const);
  const variables = linesOf(Object.entries(vars));
  const name = /^[\w-]+$/.test(title) ? title : JSON.stringify(title);
  const below = variables.length === 0 ? [] : ["", `[${name}.vars]`, ...variables];
  return [`[${name}]`, ...linesOf(known), ...below, ""].join("\n");
}

type Value = string | readonly string[] | undefined;

/** A JSON string is a valid TOML string, and so is a list of them. */
function linesOf(values: readonly (readonly [key: string, value: Value])[]): string[] {
  return values.flatMap(([key, value]) => (value === undefined ? [] : [`${key} = ${JSON.stringify(value)}`]));
}

/** The most D1 databases of a deployment. */
export const MOST_DATABASES = 32;

/** The name of a D1 database of the deployment, by its number. No other deployment is named with an underscore. */
export function databaseName({ database }: Pick<DeploymentRecord, "database">, number: number): string {
  return number === 0 ? database : `${database}_${number}`;
}

/** The ids of the D1 databases that exist, by number. */
export function databaseIds({ database_id, more_database_ids = [] }: DeploymentRecord): string[] {
  return database_id === undefined ? [] : [database_id, ...more_database_ids];
}

/** What a new deployment of this name is called at Cloudflare. */
export function newRecord(name: string): DeploymentRecord {
  const worker = `rollcall-${name}`;
  return { worker, database: worker, bucket: `${worker}-store`, queue_prefix: `${worker}-`, vars: {} };
}

/** ROLLCALL_SECRET, others by the names that the Worker has for them, and ROLLCALL_BOOTSTRAP_TOKEN until the first key is stored. */
const Secrets = z.record(z.string(), z.string());
export type DeploymentSecrets = Readonly<z.output<typeof Secrets>>;

const OTHERS = 0o077;

export function secretsFile(deploymentFile: string, name: string): string {
  return join(dirname(resolve(deploymentFile)), `rollcall.${name}.secrets.json`);
}

/** The file by which wrangler gets the secrets of one upload. A command that is killed leaves it behind. */
export function uploadFile(deploymentFile: string, name: string): string {
  return secretsFile(deploymentFile, `${name}.upload`);
}

/** Empty without a file. Throws UnreadableDeployments, also if others may read the file. */
export function readSecrets(file: string): DeploymentSecrets {
  const text = readIfThere(file);
  if (text === null) return {};
  if ((statSync(file).mode & OTHERS) !== 0) {
    throw new UnreadableDeployments(`${file} holds secrets, and others may read it: chmod 600 ${file}`);
  }
  try {
    return Secrets.parse(JSON.parse(text));
  } catch (thrown) {
    // The error itself may show a part of the file.
    if (!(thrown instanceof Error)) throw thrown;
    throw new UnreadableDeployments(`${file} is not a file of secrets that rollcall deploy wrote`);
  }
}

/** Written whole, readable by its owner only. */
export function writeSecrets(file: string, secrets: DeploymentSecrets): void {
  replaceFile(file, textOf(secrets));
}

/** Returns false if the file exists, for example because another command wrote it just now. */
export function createSecrets(file: string, secrets: DeploymentSecrets): boolean {
  return createFile(file, textOf(secrets));
}

function textOf(secrets: DeploymentSecrets): string {
  return `${JSON.stringify(secrets, null, 2)}\n`;
}

/** 64 hex digits. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}
