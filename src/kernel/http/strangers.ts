/**
 * Wrong keys, counted by the address they come from. The count is the network's own, in each of its places for itself,
 * and costs no object.
 */

import type { Caller } from "../../contract/identity.ts";
import { LruCache } from "../kit/caches.ts";
import { logError } from "../kit/log.ts";
import { Refusal } from "./errors.ts";
import type { ApiContext } from "./operation.ts";

const PERIOD_S = 60;
/** How long an address that tried too many is refused without another look. */
const REFUSED_MS = 2000;
const ADDRESSES = 2000;
/** No address is written with more. */
const ADDRESS_CHARACTERS = 64;

/** Addresses that tried too many keys, until when nobody is asked about them. */
const refused = new LruCache<number>(ADDRESSES);

/**
 * Throws what whoever sent a wrong key is answered: `otherwise`, or 429 after too many. `wrong`: what there were too many
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

/** Whether so many wrong ones came from its address just now that another is refused without a look. */
export function isRefused(context: ApiContext): boolean {
  return (refused.get(addressOf(context)) ?? 0) > context.var.now();
}

/** Whose share of the process a request takes: its organisation's, and without a key that of the address it comes from. */
export function sharerOf(context: ApiContext): string {
  const caller: Caller | undefined = context.var.caller;
  return caller?.orgId ?? `address ${addressOf(context)}`;
}

function addressOf({ req }: ApiContext): string {
  return networkOf(req.header("cf-connecting-ip") ?? "unknown");
}

/** Where the limit itself does not answer, a wrong key is a wrong key. `address`: or whose right key it is. */
export async function mayTryAgain(env: Env, address: string): Promise<boolean> {
  try {
    return (await env.WRONG_KEYS.limit({ key: address })).success;
  } catch (thrown) {
    logError("wrong keys are not counted", { address }, thrown);
    return true;
  }
}

/** Of an IPv6 address its /64: who has one address of that has all. */
function networkOf(address: string): string {
  if (!address.includes(":")) return address.slice(0, ADDRESS_CHARACTERS);
  const [head = "", tail = ""] = address.slice(0, ADDRESS_CHARACTERS).split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const after = tail.split(":").filter((group) => group !== "");
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => "0");
  const whole = address.includes("::") ? [...groups, ...zeros, ...after] : groups;
  return `${whole.slice(0, 4).join(":")}::/64`;
}
