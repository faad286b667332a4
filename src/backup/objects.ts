/** The storage of any object, by its kind and name. */
import type { StorageRpc } from "../kernel/kit/stored-object.ts";
import type { ObjectKind, StartedObjects, StoragePage, WrittenStorage } from "./wire.ts";

const BINDINGS = {
  account: "ACCOUNT",
  audit: "AUDIT",
  organization: "PROJECT",
  project: "PROJECT",
  fleet: "FLEET",
  webhook: "WEBHOOK",
  trigger: "TRIGGER",
  run: "RUN",
  trainer: "TRAINER",
  shard: "ROLLOUT",
} as const satisfies Record<ObjectKind, keyof Env>;

export async function readStorage(
  env: Env,
  kind: ObjectKind,
  name: string,
  after: string | null,
): Promise<StoragePage> {
  const { needs, ...page } = await objectOf(env, kind, name).readStorage(after);
  return { ...page, needs: { files: [...needs.files], shards: [...needs.shards] } };
}

/** False: all of it is written already. */
export async function writeStorage(env: Env, { kind, name, ...page }: WrittenStorage): Promise<boolean> {
  return await objectOf(env, kind, name).writeStorage(page);
}

export async function startObjects(env: Env, { objects }: StartedObjects): Promise<void> {
  await Promise.all(objects.map(({ kind, name, alarm }) => objectOf(env, kind, name).startCopied(alarm)));
}

function objectOf(env: Env, kind: ObjectKind, name: string): StorageRpc {
  const stub: unknown = env[BINDINGS[kind]].getByName(name);
  return stub as StorageRpc;
}
