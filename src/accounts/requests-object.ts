/**
 * Counts the requests of one key, or of a whole organisation. Nothing is on disk: after a restart the bucket is full,
 * which allows at most one more minute's requests.
 */
import { DurableObject } from "cloudflare:workers";
import type { Serves } from "../kernel/messages/rpc.ts";
import { RequestBudget } from "./request-budget.ts";
import type { RequestsAsk, RequestsLease, RequestsRpc } from "./rpc.ts";

export class RequestsObject extends DurableObject<Env> implements Serves<RequestsRpc> {
  /** The clock; tests replace it. */
  now: () => number = () => Date.now();
  readonly #budget = new RequestBudget();

  take(asked: RequestsAsk): RequestsLease {
    return this.#budget.take(asked, this.now());
  }
}
