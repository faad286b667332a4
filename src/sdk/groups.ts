/** The groups of a run: the rollouts of one task. */
import type { GroupSummary, GroupSummaryList, GroupView } from "../contract/rollout-list.ts";
import type { CallOptions, GroupListQuery } from "./options.ts";
import { filtered, type PagePromise, pathTo } from "./requests.ts";
import { Resource } from "./resource.ts";

export class Groups extends Resource {
  /** With a filter: the groups with a member that matches it. */
  list(
    runId: string,
    query: GroupListQuery = {},
    options: CallOptions = {},
  ): PagePromise<GroupSummary, GroupSummaryList> {
    return this.requests.list(pathTo`/runs/${runId}/groups`, filtered(query), options);
  }

  /** One group with its members. */
  get(runId: string, group: number, options: CallOptions = {}): Promise<GroupView> {
    return this.requests.json(pathTo`/runs/${runId}/groups/${group}`, options);
  }
}
