/** What making ids takes here: the clock given, the runtime's randomness, and our keyed hash. */
import type { Minting } from "../../core/ids.ts";
import { idMac } from "./secrets.ts";

/** `now` is epoch milliseconds. */
export function minting(env: Env, now: number): Minting {
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  return { now, random, mac: idMac(env.ROLLCALL_SECRET) };
}
