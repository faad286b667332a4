/** Frees the storage of a run's rollouts, long after its end, a slice at a time. */
import { LIMITS } from "../../contract/limits.ts";
import type { RunSpec } from "../contract/wire.ts";
import { rolloutObject } from "../kit/names.ts";
import type { Subrequests } from "../kit/subrequests.ts";
import type { RunStore } from "./store.ts";

/** False: one of them still owes its report, and the slice is to be tried again. */
export async function freeSlice(env: Env, store: RunStore, spec: RunSpec, subrequests: Subrequests): Promise<boolean> {
  const rows = store.dispatchedAfter(store.head().freed, LIMITS.sliceObjects);
  const made = rows.filter(({ carries }) => carries === null);
  const freed = await subrequests.objectAll(made, (row) => rolloutObject(env, spec.scope, row.id).free());
  if (freed.includes(false)) return false;
  store.saveHead({ ...store.head(), freed: rows.at(-1)?.seq ?? -1 });
  return true;
}
