/**
 * Counts wrong keys by the address that they come from. The count is kept by Cloudflare's network, separately in each
 * location, and uses no Durable Object.
 */

import type { Caller } from "../../contract/identity.ts";
import { LruCache } from "../kit/caches.ts";
import { logError } from "../kit/log.ts";
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";

const PERIOD_S = 60;
/** How long an address that tried too many keys is refused without another check. */
const REFUSED_MS = 2000;
const ADDRESSES = 2000;
/** Maximum length of an address. */
const ADDRESS_CHARACTERS = 64;

/** Addresses that tried too many keys, each with the time until which it is refused without a check. */
const refused = new LruCache<number>(ADDRESSES);

/**
 * Throws the answer to a wrong key: `otherwise`, or 429 after too many. `wrong`: the word for what there were too many
 * of.
 */
export async function refuseStranger(context: ApiContext, otherwise: Refusal, wrong = "wrong keys"): Promise<never> {
  const { env, var: variables } = context;
  const address = addressOf(context);
  const known = isRefused(context);
  if (!known && (await mayTryAgain(env, address))) throw otherwise;
  if (!known) refused.set(address, variables.now() + REFUSED_MS);
  const headers = { "retry-after": String(PERIOD_S) };
  throw new Refusal({ code: "rate_limited", message: `too many ${wrong}`, param: null }, { headers });
}

/** Whether its address sent so many wrong keys recently that the request is refused without a check. */
export function isRefused(context: ApiContext): boolean {
  return (refused.get(addressOf(context)) ?? 0) > context.var.now();
}

/** Whose share of the process a request uses: its organisation's, or without a key that of its address. */
export function sharerOf(context: ApiContext): string {
  const caller: Caller | undefined = context.var.caller;
  return caller?.orgId ?? `address ${addressOf(context)}`;
}

function addressOf({ req }: ApiContext): string {
  return networkOf(req.header("cf-connecting-ip") ?? "unknown");
}

/** Whether the limit allows another try; true if the limiter fails. `address`: an address, or the owner of a valid key. */
export async function mayTryAgain(env: Env, address: string): Promise<boolean> {
  try {
    return (await env.WRONG_KEYS.limit({ key: address })).success;
  } catch (thrown) {
    logError("wrong keys are not counted", { address }, thrown);
    return true;
  }
}

/** For IPv6, the /64 of the address: an owner of one address has the whole /64. */
function networkOf(address: string): string {
  if (!address.includes(":")) return address.slice(0, ADDRESS_CHARACTERS);
  const [head = "", tail = ""] = address.slice(0, ADDRESS_CHARACTERS).split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const after = tail.split(":").filter((group) => group !== "");
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => "0");
  const whole = address.includes("::") ? [...groups, ...zeros, ...after] : groups;
  return `${whole.slice(0, 4).join(":")}::/64`;
}
