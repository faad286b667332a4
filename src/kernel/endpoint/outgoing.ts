/** How the platform calls a server for an organisation: the way out, and room for the replies. */
import type { Scope } from "../../contract/scope.ts";
import type { Send } from "../clients/outgoing.ts";
import type { ReplyReservation } from "../clients/reply-reservation.ts";
import { allowedHosts, wayOut } from "../kit/address.ts";
import { replyReservation } from "./reply-reservation.ts";

export interface Outgoing {
  readonly send: Send;
  /** Memory and computing time of the organisation, for one reply. */
  readonly openReservation: () => ReplyReservation;
}

export async function outgoingFor(env: Env, scope: Scope): Promise<Outgoing> {
  const openReservation = () => replyReservation(scope.orgId);
  return { send: wayOut(env, await allowedHosts(env, scope)), openReservation };
}
