/** How the platform calls a server for an organisation: the way out, room for the replies, and how long it may be silent. */
import { LIMITS } from "../../contract/limits.ts";
import type { Scope } from "../../contract/scope.ts";
import type { Send } from "../clients/outgoing.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { allowedHosts, wayOut } from "../kit/address.ts";
import { replyReservation } from "../kit/reply-reservation.ts";

export interface Outgoing {
  readonly send: Send;
  /** Memory and computing time of the organisation, for one reply. */
  readonly openReservation: () => ReplyReservation;
  /** Milliseconds without a byte after which a call is lost, unless the server has a limit of its own. */
  readonly silence_ms: number;
}

export async function outgoingFor(env: Env, scope: Scope): Promise<Outgoing> {
  const openReservation = () => replyReservation(env, scope.orgId);
  return { send: wayOut(env, await allowedHosts(env, scope)), openReservation, silence_ms: silenceLimitOf(env) };
}

/** Cloudflare ends a call after about 125 s without bytes. */
const SILENCE_LIMIT_S = 100;

/** In milliseconds. A wrangler.toml of another release lacks the variable; a timer of no or of endless time ends each call at once. */
export function silenceLimitOf(env: { readonly SILENCE_LIMIT_S?: unknown }): number {
  const seconds = Number(env.SILENCE_LIMIT_S);
  return (seconds > 0 ? Math.min(seconds, LIMITS.silenceLimitS) : SILENCE_LIMIT_S) * 1000;
}
