/** Notifies an organisation's object that something was changed in the database. */
import { logError } from "../kit/log.ts";
import { accountObject } from "../kit/names.ts";

/** For changed limits, billing or budgets. If this fails, the object reads them itself some minutes later. */
export async function notifyAccount(env: Env, id: string): Promise<void> {
  try {
    await accountObject(env, id).changed();
  } catch (thrown) {
    logError("the organization was not notified of a change", { org_id: id }, thrown);
  }
}
