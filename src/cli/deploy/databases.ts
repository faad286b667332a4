/** The D1 databases of a deployment: how many, made where they are missing, and migrated. */
import type { CloudflareAccount } from "../../local/cloudflare/account.ts";
import { migrateDatabase } from "../../local/cloudflare/migrate-database.ts";
import type { PlacedDeployment } from "../../local/deployment-config.ts";
import {
  type DeploymentRecord,
  databaseIds,
  databaseName,
  MOST_DATABASES,
  writeDeployment,
} from "../../local/deployment-file.ts";
import { StepFailed } from "../backup/step-failed.ts";
import { usageError } from "../exit.ts";
import { hasOrganization } from "./deployment.ts";

type Log = (line: string) => void;

/** How many D1 databases the deployment shall have. None is removed: ids of organisations and keys name them. */
export function databasesOf(
  record: DeploymentRecord,
  { name, databases }: { readonly name: string; readonly databases: number | undefined },
): number {
  const has = databaseIds(record).length;
  const wanted = databases ?? Math.max(has, 1);
  if (wanted > MOST_DATABASES) throw usageError(`--databases: must be at most ${MOST_DATABASES}`, "databases");
  if (wanted >= has) return wanted;
  throw usageError(`--databases: ${name} has ${has}, and none can be removed: organisations are in them`, "databases");
}

/** Each is in the deployment's file before the next one is created. */
export async function ensureDatabases(
  account: CloudflareAccount,
  { file, name }: { readonly file: string; readonly name: string },
  chosen: DeploymentRecord,
  databases: number,
  log: Log,
): Promise<PlacedDeployment> {
  const database_id = await ensureDatabase(account, chosen, 0, log);
  let record = { ...chosen, account_id: account.id, database_id };
  await writeDeployment(file, name, record);
  for (let number = 1; number < databases; number += 1) {
    const id = await ensureDatabase(account, record, number, log);
    const [, ...others] = databaseIds(record);
    record = { ...record, more_database_ids: [...others.slice(0, number - 1), id, ...others.slice(number)] };
    await writeDeployment(file, name, record);
  }
  return record;
}

async function ensureDatabase(
  account: CloudflareAccount,
  record: DeploymentRecord,
  number: number,
  log: Log,
): Promise<string> {
  const name = databaseName(record, number);
  const field = number === 0 ? "database_id" : `more_database_ids[${number - 1}]`;
  const found = await account.findDatabase(name);
  const known = databaseIds(record)[number];
  const recorded = known ?? found;
  if (found !== null && found === recorded) return found;
  if (found !== null) {
    throw new StepFailed(
      `the database ${name} is ${found}, but this deployment has ${recorded}: is this another account, or was the database replaced? If it is the right one, set ${field} to it in the deployment's file`,
    );
  }
  if (known !== undefined) {
    throw new StepFailed(
      `the database ${name} (${known}) of this deployment does not exist any more: restore it, or remove ${field} from the deployment's file to begin with an empty one`,
    );
  }
  log(`creating the database ${name}`);
  return await account.createDatabase(name, record);
}

export async function hasOrganizations(account: CloudflareAccount, record: PlacedDeployment): Promise<boolean> {
  for (const id of databaseIds(record)) {
    if (await hasOrganization(account.database(id))) return true;
  }
  return false;
}

/** The names of the migrations that one of its D1 databases or more lacked. */
export async function migrateDatabases(
  account: CloudflareAccount,
  record: PlacedDeployment,
  migrations: string,
  log: Log,
): Promise<string[]> {
  const all = new Set<string>();
  for (const [number, id] of databaseIds(record).entries()) {
    const applied = await migrateDatabase(account.database(id), migrations);
    const what = number === 0 ? "the database" : `the database ${databaseName(record, number)}`;
    log(applied.length === 0 ? `${what} is up to date` : `applied ${applied.length} migrations to ${what}`);
    for (const one of applied) all.add(one);
  }
  return [...all].sort();
}
