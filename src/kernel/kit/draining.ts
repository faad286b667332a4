/**
 * Whether the deployment is draining: no rollout is started until its operator ends that, and rollouts in flight finish.
 *
 * The state is one file of the bucket, so it outlives an upgrade, and a backup does not contain it. The object of an
 * organisation reads it with the limits, not per rollout. src/operator writes it.
 */

/** Files of the platform itself begin like this. No organisation has this id. */
export const PLATFORM_FOLDER = "org/platform/";
const KEY = `${PLATFORM_FOLDER}draining`;

/** Epoch milliseconds; null if it is not draining. */
export async function drainingSince({ STORE }: Pick<Env, "STORE">): Promise<number | null> {
  return (await STORE.head(KEY))?.uploaded.getTime() ?? null;
}

/** A repeat keeps the time of the first call. */
export async function beginDrain({ STORE }: Env): Promise<void> {
  await STORE.put(KEY, "", { onlyIf: { etagDoesNotMatch: "*" } });
}

export async function endDrain({ STORE }: Env): Promise<void> {
  await STORE.delete(KEY);
}
