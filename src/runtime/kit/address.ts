/** Addresses this deployment may be sent to: public ones, unless it is told that its own network is meant. */
import { isPublicHost } from "../../core/public-host.ts";
import { type Result, refuse } from "../contract/refusal.ts";

export function refuseAddress(env: Env, base_url: string, param: string): Result<never> | null {
  if (env.ALLOW_PRIVATE_ENDPOINTS === "true") return null;
  const { hostname } = new URL(base_url);
  if (isPublicHost(hostname)) return null;
  const message =
    `${hostname} is not a public address: the platform calls it from its own network; ` +
    "a deployment whose endpoints are private sets ALLOW_PRIVATE_ENDPOINTS";
  return refuse("url_not_allowed", message, param);
}
