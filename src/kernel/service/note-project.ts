/** Reports that a project has something for the daily cleanup, at most once a day in each isolate. */
import type { Scope } from "../../contract/scope.ts";
import { LruCache } from "../kit/caches.ts";
import { idsOf, logError } from "../kit/log.ts";
import { folderOf } from "../kit/names.ts";
import { notifyOfProject } from "../kit/slice-hooks.ts";

const DAY_MS = 24 * 3600_000;
const PROJECTS_KEPT = 1000;
/** When each project was last reported. */
const notified = new LruCache<number>(PROJECTS_KEPT);

/** Never throws: creating a resource does not depend on it. */
export async function noteProject(env: Env, scope: Scope, now: number): Promise<void> {
  const name = folderOf(scope);
  if ((notified.get(name) ?? 0) + DAY_MS > now) return;
  try {
    await notifyOfProject(env, scope);
    notified.set(name, now);
  } catch (thrown) {
    logError("the project was not notified", idsOf({ scope }), thrown);
  }
}
