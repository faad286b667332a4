/** Sends e-mail to the owners of an organisation, if the deployment can send e-mail. */
import { accounts } from "./account-hooks.ts";
import type { Subrequests } from "./subrequests.ts";

/** The maximum number of owners that get the e-mail. */
const ADDRESSES = 20;

export interface Letter {
  readonly subject: string;
  readonly text: string;
}

/** Throws if an e-mail was refused, or if the owners cannot be read. */
export async function mailOwners(env: Env, subrequests: Subrequests, orgId: string, letter: Letter): Promise<void> {
  const { ALERTS, ALERTS_FROM } = env;
  if (ALERTS === undefined || ALERTS_FROM === undefined) return;
  const addresses = await subrequests.fetch(() => accounts().ownersOf(env, orgId, ADDRESSES));
  if (addresses.length === 0) return;
  await subrequests.fetch(() => ALERTS.send({ from: ALERTS_FROM, to: addresses, ...letter }));
}
