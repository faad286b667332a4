/**
 * Deletes a deployment. The Worker goes first, with its Durable Objects, so that nothing is written any more. What was
 * deleted already is passed over, so an interrupted command can be repeated.
 */
import { rmSync } from "node:fs";
import type { CloudflareAccount } from "../../local/cloudflare/account.ts";
import type { CloudflareApi } from "../../local/cloudflare/api.ts";
import { queuesOf, readReleased, renamedQueues } from "../../local/deployment-config.ts";
import { type DeploymentRecord, secretsFile, uploadFile, writeDeployment } from "../../local/deployment-file.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import { accountOf, hasOrganization, recordedDeployment } from "./deployment.ts";

export interface DestroyAsked {
  readonly file: string;
  readonly name: string;
  /** Also delete a database with organisations and a bucket with objects. */
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
  log(`deleting the Worker ${record.worker}`);
  await account.deleteWorker(record.worker);
  const existing = await account.listQueues();
  const queues = queuesOf(renamedQueues(await readReleased(PACKAGE_ROOT), record));
  const ids = queues.flatMap((queue) => existing.get(queue) ?? []);
  log(`deleting ${ids.length} queues`);
  for (const id of ids) await account.deleteQueue(id);
  const kept = [...(await deleteDatabase(account, record, data)), ...(await deleteBucket(account, record, data))];
  if (kept.length > 0) return { name, kept };
  for (const secrets of [secretsFile(file, name), uploadFile(file, name)]) rmSync(secrets, { force: true });
  await writeDeployment(file, name, null);
  return { name, kept };
}

async function deleteDatabase(account: CloudflareAccount, { database }: DeploymentRecord, data: boolean) {
  const id = await account.findDatabase(database);
  if (id === null) return [];
  if (!data && (await hasOrganization(account.database(id)))) {
    return [`the database ${database} has organisations: --data deletes it too`];
  }
  await account.deleteDatabase(id);
  return [];
}

async function deleteBucket(account: CloudflareAccount, record: DeploymentRecord, data: boolean) {
  if (await account.deleteBucket(record.bucket, record)) return [];
  if (!data) return [`the bucket ${record.bucket} has objects: --data deletes them too`];
  await account.expireObjects(record.bucket, record);
  return [`the bucket ${record.bucket}: R2 deletes its objects within a day or two: then repeat this command`];
}
