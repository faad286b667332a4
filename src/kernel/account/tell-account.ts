/** The object of an organisation hears that something of it was changed in the database. */
import { logError } from "../kit/log.ts";
import { accountObject } from "../kit/names.ts";

/** That its limits, its billing or its budgets changed. What it cannot be told now its object reads by itself, minutes later. */
export async function tellAccount(env: Env, id: string): Promise<void> {
  try {
    await accountObject(env, id).changed();
  } catch (thrown) {
    logError("organization was not told of a change", { org_id: id }, thrown);
  }
}
