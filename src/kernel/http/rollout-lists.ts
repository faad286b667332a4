/** A run's rollouts as lists: filtered and sorted, by group, and the distribution of a number over them. */
import * as z from "zod";
import { wholeNumber } from "../../contract/primitives.ts";
import {
  GroupQuery,
  GroupSummaryList,
  GroupView,
  Histogram,
  HistogramQuery,
  RolloutQuery,
  RolloutSummaryList,
} from "../../contract/rollout-list.ts";
import { answer, readQuery } from "./answer.ts";
import { parseAs } from "./input.ts";
import { type Operation, pathParam } from "./operation.ts";

/** CPU of a sorted page of a run of 20,000 rollouts, in milliseconds. */
const LIST_COST_MS = 20;

const GroupPath = z.strictObject({ group: wholeNumber(0, 1_000_000) });

export const rolloutListOperations: readonly Operation[] = [
  {
    id: "listRollouts",
    route: "GET /v1/runs/{id}/rollouts",
    costMs: LIST_COST_MS,
    permission: "rollouts:read",
    summary: "List a run's rollouts, in flight and ended: filtered, sorted, page by page",
    description:
      "`filter` uses the language of docs/filter.md, as in `reward<0.5 error:provider -truncated:true`. A page starts after a rollout's position in the order: a rollout whose value changes between pages may be missed or listed twice. The first list that sorts by a number, or filters by error, stop, task or example, builds an index of that run.",
    query: RolloutQuery,
    reply: { description: "One page; `last_id` is the next `after`", schema: RolloutSummaryList },
    handle: (context) => answer(context, context.var.services.listRollouts, readQuery(context, RolloutQuery)),
  },
  {
    id: "listGroups",
    route: "GET /v1/runs/{id}/groups",
    costMs: LIST_COST_MS,
    permission: "rollouts:read",
    summary: "List a run's groups with the results of their rollouts",
    query: GroupQuery,
    reply: { description: "One page; `last_id` is the next `after`", schema: GroupSummaryList },
    handle: (context) => answer(context, context.var.services.listGroups, readQuery(context, GroupQuery)),
  },
  {
    id: "getGroup",
    route: "GET /v1/runs/{id}/groups/{group}",
    permission: "rollouts:read",
    summary: "Read one group with its members",
    reply: { description: "The group; `not_found` before any rollout of it was dispatched", schema: GroupView },
    handle: (context) => {
      const { group } = parseAs(GroupPath, { group: pathParam(context, "group") });
      return answer(context, context.var.services.readGroup, group);
    },
  },
  {
    id: "getHistogram",
    route: "GET /v1/runs/{id}/histogram",
    costMs: LIST_COST_MS,
    permission: "rollouts:read",
    summary: "Count a run's rollouts in bins of one of their numbers",
    query: HistogramQuery,
    reply: { description: "The bins, and how many rollouts are in none", schema: Histogram },
    handle: (context) => answer(context, context.var.services.readHistogram, readQuery(context, HistogramQuery)),
  },
];
