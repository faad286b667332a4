/** What a policy server serves, set from outside. */
import { readFileSync } from "node:fs";
import { BASE_WEIGHTS_FILE } from "./weights.ts";

/** What the policy is called before it was trained. */
const BASE_VERSION = "base";

/** The policy as it comes with Rollcall. `policyUrl` goes up to and including /v1. */
export async function serveBaseWeights(policyUrl: string): Promise<void> {
  const reply = await fetch(new URL("/update_weights", policyUrl), {
    method: "POST",
    headers: { "x-weight-version": BASE_VERSION, "content-type": "application/octet-stream" },
    body: readFileSync(BASE_WEIGHTS_FILE),
  });
  if (!reply.ok) throw new Error(`the policy refuses weights: ${reply.status} ${await reply.text()}`);
  await reply.body?.cancel();
}
