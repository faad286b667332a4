/** What people think of rollouts. The caller writes and deletes only its own reviews. */
import type { Deleted } from "../contract/endpoint.ts";
import type { ReviewRequestInput, ReviewView } from "../reviews/wire.ts";
import type { CallOptions, ListQuery } from "./options.ts";
import { type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Reviews extends Resource {
  /** Replaces the caller's earlier review of the rollout. Throws `conflict` before the rollout's end. */
  put(rolloutId: string, request: ReviewRequestInput, options: CallOptions = {}): Promise<ReviewView> {
    return this.requests.put(pathTo`/rollouts/${rolloutId}/review`, request, options);
  }

  delete(rolloutId: string, options: CallOptions = {}): Promise<Deleted> {
    return this.requests.delete(pathTo`/rollouts/${rolloutId}/review`, options);
  }

  /** Reviews of one rollout. */
  list(rolloutId: string, query: ListQuery = {}, options: CallOptions = {}): PagePromise<ReviewView> {
    return this.requests.list(pathTo`/rollouts/${rolloutId}/reviews`, query, options);
  }

  /** Reviews of all rollouts of a run. */
  listOfRun(runId: string, query: ListQuery = {}, options: CallOptions = {}): PagePromise<ReviewView> {
    return this.requests.list(pathTo`/runs/${runId}/reviews`, query, options);
  }
}
