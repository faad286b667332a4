/**
 * Counts the requests of one key, or of a whole organisation. It keeps nothing on disk: one that was away begins with a
 * full bucket, which is at most a minute's requests more.
 */
import { DurableObject } from "cloudflare:workers";
import type { Serves } from "../kernel/messages/rpc.ts";
import { RequestBudget } from "./request-budget.ts";
import type { RequestsAsk, RequestsGrant, RequestsRpc } from "./rpc.ts";

export class RequestsObject extends DurableObject<Env> implements Serves<RequestsRpc> {
  /** The clock, replaced by tests. */
  now: () => number = () => Date.now();
  readonly #budget = new RequestBudget();

  take(asked: RequestsAsk): RequestsGrant {
    return this.#budget.take(asked, this.now());
  }
}
