/** The part of the client about a run's rollouts as lists: filtered, sorted, by groups, and how a number is spread. */
import type {
  GroupSummary,
  GroupSummaryList,
  GroupView,
  Histogram,
  RolloutSummary,
  RolloutSummaryList,
} from "../contract/rollout-list.ts";
import { FleetsClient } from "./fleets-client.ts";
import type { CallOptions, GroupListQuery, HistogramQuery, RolloutListQuery } from "./options.ts";
import { eachOf, search } from "./requests.ts";

export class RolloutsClient extends FleetsClient {
  /** One page of a run's rollouts, in flight or ended: those that pass the filter, in the order of `sort`. */
  listRollouts(runId: string, query: RolloutListQuery = {}, options: CallOptions = {}): Promise<RolloutSummaryList> {
    return this.requests.json(pathOf(runId, "rollouts", query), options);
  }

  /** All of them, page after page. */
  rollouts(runId: string, query: RolloutListQuery = {}, options: CallOptions = {}): AsyncGenerator<RolloutSummary> {
    return eachOf(query, (page) => this.listRollouts(runId, page, options));
  }

  /** One page of a run's groups; with a filter, of those that have a member which passes it. */
  listGroups(runId: string, query: GroupListQuery = {}, options: CallOptions = {}): Promise<GroupSummaryList> {
    return this.requests.json(pathOf(runId, "groups", query), options);
  }

  groups(runId: string, query: GroupListQuery = {}, options: CallOptions = {}): AsyncGenerator<GroupSummary> {
    return eachOf(query, (page) => this.listGroups(runId, page, options));
  }

  /** One group with its members. */
  getGroup(runId: string, group: number, options: CallOptions = {}): Promise<GroupView> {
    return this.requests.json(pathOf(runId, `groups/${group}`, {}), options);
  }

  /** How a number of a run's rollouts is spread: the reward, unless `of` says otherwise. */
  histogram(runId: string, query: HistogramQuery = {}, options: CallOptions = {}): Promise<Histogram> {
    return this.requests.json(pathOf(runId, "histogram", query), options);
  }
}

/** An empty filter is none. */
function pathOf(runId: string, part: string, query: { readonly filter?: string | undefined }): string {
  return `/runs/${encodeURIComponent(runId)}/${part}${search({ ...query, filter: query.filter || undefined })}`;
}
