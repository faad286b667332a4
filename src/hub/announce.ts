/** Tells the webhooks of an organisation about its published environments. */
import type { OutboundEventName } from "../contract/outbound-event.ts";
import type { PublishedVersion } from "../contract/published-environment.ts";
import { sha256Hex } from "../kernel/kit/secrets.ts";
import { emitOrganizationEvents } from "../kernel/kit/slice-hooks.ts";
import { Subrequests } from "../kernel/kit/subrequests.ts";

/** A repeat has the same id, so it is delivered once. `at`: epoch milliseconds. */
export async function announce(
  env: Env,
  orgId: string,
  type: OutboundEventName & `environment.${string}`,
  { id, name, digest, yanked }: PublishedVersion,
  at: number,
): Promise<void> {
  // A version is published once, and yanked again only after the yank was undone.
  const once = type === "environment.yanked" ? `${id} ${yanked?.at}` : id;
  const event = {
    ...{ id: `evt_${sha256Hex(`${type} ${once}`)}`, type, at },
    ...{ subject: name, data: { environment: id, digest, reason: yanked?.reason ?? null } },
    path: `/v1/environments/${encodeURIComponent(id)}`,
  };
  await emitOrganizationEvents(env, orgId, [event], new Subrequests());
}
