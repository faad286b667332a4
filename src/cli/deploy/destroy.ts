/**
 * Deletes a deployment. The Worker goes first, with its Durable Objects, so that nothing is written any more. With them
 * go all runs: a database that has organisations is useless without its objects, so it stays or goes with the Worker.
 * What was deleted already is passed over, so an interrupted command can be repeated.
 */
import { rmSync } from "node:fs";
import type { CloudflareAccount } from "../../local/cloudflare/account.ts";
import type { CloudflareApi } from "../../local/cloudflare/api.ts";
import { queuesOf, readReleased, renamedQueues } from "../../local/deployment-config.ts";
import {
  type DeploymentRecord,
  databaseIds,
  databaseName,
  secretsFile,
  uploadFile,
  writeDeployment,
} from "../../local/deployment-file.ts";
import { COMMAND, PACKAGE_ROOT } from "../../local/package-root.ts";
import { StepFailed } from "../backup/step-failed.ts";
import { accountOf, hasOrganization, recordedDeployment } from "./deployment.ts";

export interface DestroyAsked {
  readonly file: string;
  readonly name: string;
  /** Delete a deployment that has organisations, and a bucket that has objects. */
  readonly data: boolean;
}

export interface Destroyed {
  readonly name: string;
  /** What stays at Cloudflare, each with the reason. */
  readonly kept: readonly string[];
}

export async function destroyDeployment(
  api: CloudflareApi,
  { file, name, data }: DestroyAsked,
  log: (line: string) => void,
): Promise<Destroyed> {
  const record = await recordedDeployment(file, name);
  const account = await accountOf(api, record.account_id);
  const databases = await findDatabases(account, record);
  for (const id of databases) {
    if (data || !(await hasOrganization(account.database(id)))) continue;
    throw new StepFailed(
      `${name} has organisations, and nothing was deleted: --data deletes them, their runs and their datasets (${COMMAND} deploy backup copies them first)`,
    );
  }
  log(`deleting the Worker ${record.worker}`);
  await account.deleteWorker(record.worker);
  const existing = await account.listQueues();
  const queues = queuesOf(renamedQueues(await readReleased(PACKAGE_ROOT), record));
  const ids = queues.flatMap((queue) => existing.get(queue) ?? []);
  log(`deleting ${ids.length} queues`);
  for (const id of ids) await account.deleteQueue(id);
  for (const id of databases) await account.deleteDatabase(id);
  const kept = await deleteBucket(account, record, data);
  if (kept.length > 0) return { name, kept };
  for (const secrets of [secretsFile(file, name), uploadFile(file, name)]) rmSync(secrets, { force: true });
  await writeDeployment(file, name, null);
  return { name, kept };
}

/** The ids of its D1 databases that exist. */
async function findDatabases(account: CloudflareAccount, record: DeploymentRecord): Promise<string[]> {
  const found: string[] = [];
  for (let number = 0; number < Math.max(1, databaseIds(record).length); number += 1) {
    const id = await account.findDatabase(databaseName(record, number));
    if (id !== null) found.push(id);
  }
  return found;
}

async function deleteBucket(account: CloudflareAccount, record: DeploymentRecord, data: boolean) {
  if (await account.deleteBucket(record.bucket, record)) return [];
  if (!data) return [`the bucket ${record.bucket} has objects: --data deletes them too`];
  await account.expireObjects(record.bucket, record);
  return [`the bucket ${record.bucket}: R2 deletes its objects within a day or two: then repeat this command`];
}
