/** Rollouts: each is one attempt at a task. */
import type { CreatedRollout, FinishedRollout, RolloutFinishInput, RolloutRequestInput } from "../agents/wire.ts";
import type { RolloutSummary, RolloutSummaryList } from "../contract/rollout-list.ts";
import type { RolloutView, RunView } from "../contract/run.ts";
import type { ForkRequestInput } from "../contract/run-control.ts";
import type { JudgeQuestionList, Outline, RolloutHead } from "../contract/turns.ts";
import type { CallOptions, OutlineQuery, PostOptions, RolloutListQuery } from "./options.ts";
import { filtered, headersOf, type PagePromise, pathTo, search } from "./requests.ts";
import { Resource } from "./resource.ts";
import { Turns } from "./turns.ts";

export class Rollouts extends Resource {
  readonly turns: Turns = new Turns(this.requests);

  /** A run's rollouts, in flight or ended: those that match the filter, in the order of `sort`. */
  list(
    runId: string,
    query: RolloutListQuery = {},
    options: CallOptions = {},
  ): PagePromise<RolloutSummary, RolloutSummaryList> {
    return this.requests.list(pathTo`/runs/${runId}/rollouts`, filtered(query), options);
  }

  /** The whole rollout; before it has ended, what is stored so far. */
  get(rolloutId: string, options: CallOptions = {}): Promise<RolloutView> {
    return this.requests.json(pathTo`/rollouts/${rolloutId}`, options);
  }

  /** Ends one rollout early; its run continues. */
  cancel(rolloutId: string, options: PostOptions = {}): Promise<RolloutView> {
    return this.requests.post(pathTo`/rollouts/${rolloutId}/cancel`, {}, options);
  }

  /** A run of one rollout, which the caller plays through its address. */
  create(request: RolloutRequestInput, options: PostOptions = {}): Promise<CreatedRollout> {
    return this.requests.post("/rollouts", request, options);
  }

  /** Ends a rollout that an agent plays. `key`: the rollout's own, from its lease. */
  finish(
    rolloutId: string,
    key: string,
    request: RolloutFinishInput,
    { idempotencyKey, ...options }: PostOptions = {},
  ): Promise<FinishedRollout> {
    const headers = { ...headersOf("application/json", idempotencyKey), authorization: `Bearer ${key}` };
    const body = JSON.stringify(request);
    return this.requests.json(pathTo`/rollouts/${rolloutId}/finish`, { ...options, method: "POST", headers, body });
  }

  /** A new run whose rollouts continue after a turn of an ended one. */
  fork(rolloutId: string, request: ForkRequestInput, options: PostOptions = {}): Promise<RunView> {
    return this.requests.post(pathTo`/rollouts/${rolloutId}/fork`, request, options);
  }

  /** The rollout without its prompt, completion, turns and state, but with the number of its turns. */
  head(rolloutId: string, options: CallOptions = {}): Promise<RolloutHead> {
    return this.requests.json(pathTo`/rollouts/${rolloutId}/head`, options);
  }

  /** What its judges were asked: one question for each judgement, built again from its turns. */
  questions(rolloutId: string, options: CallOptions = {}): Promise<JudgeQuestionList> {
    return this.requests.json(pathTo`/rollouts/${rolloutId}/questions`, options);
  }

  /** One page of its turns without their texts. `last_id` is `after` of the next page. */
  outline(rolloutId: string, query: OutlineQuery = {}, options: CallOptions = {}): Promise<Outline> {
    return this.requests.json(pathTo`/rollouts/${rolloutId}/outline` + search(query), options);
  }
}
