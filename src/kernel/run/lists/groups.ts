/**
 * A run's groups with their statistics. One call reads one slice of groups, with about `rows` rollouts, and returns the
 * first of them in the requested order. The caller merges the slices.
 */

import { LIMITS } from "../../../contract/limits.ts";
import type { GroupSort } from "../../../contract/rollout-list.ts";
import { isSameScore, SCORE_TOLERANCE } from "../../../contract/same-score.ts";
import { largestGroup } from "../../../core/training/members.ts";
import type { GroupRecord, ListedGroup } from "../../messages/list-wire.ts";
import type { ListAnswer, ListAsk } from "../../messages/rpc.ts";
import { stopsAll } from "../control.ts";
import { Bound, conditionOf } from "./conditions.ts";
import type { Listed } from "./listed.ts";
import { membersOf } from "./rollouts.ts";
import { SCANNED } from "./slice-size.ts";
import { makeTexts } from "./texts.ts";

type GroupRow = {
  group_index: number;
  example_id: number | null;
  task_key: string | null;
  task_text: string | null;
  member: string | null;
  dispatched: number;
  in_flight: number;
  scored: number;
  unscored: number;
  failed: number;
  cancelled: number;
  superseded: number;
  mean: number | null;
  least: number | null;
  most: number | null;
  variance: number | null;
  turns: number | null;
  tokens: number | null;
  state: NonNullable<ListedGroup["training"]>["state"] | null;
  reason: string | null;
  step: number | null;
  dispatch_version: number | null;
  max_version: number | null;
  value: number | null;
};

/** Results of each group count only the current attempts. */
const counted = (name: string, condition: string) => `count(*) filter (where ${condition}) as ${name}`;
const COUNTS = "r.superseded_by is null";
const outcomes = ["scored", "unscored", "failed", "cancelled"]
  .map((outcome) => counted(outcome, `${COUNTS} and r.outcome = '${outcome}'`))
  .join(", ");
const ENDED = `${COUNTS} and r.status = 'done'`;
const REWARD = "case when r.superseded_by is null then r.reward end";
const NUMBERS = `r.group_index, min(r.example_id) as example_id, min(r.task_key) as task_key,
  min(r.task_text) as task_text, min(r.member) as member,
  ${counted("dispatched", COUNTS)}, ${counted("in_flight", `${COUNTS} and r.status != 'done'`)}, ${outcomes},
  ${counted("superseded", "r.superseded_by is not null")},
  avg(${REWARD}) as mean, min(${REWARD}) as least, max(${REWARD}) as most,
  total(${REWARD} * ${REWARD}) as squares, count(${REWARD}) as rewards,
  avg(r.turns) filter (where ${ENDED}) as turns,
  avg(r.prompt_tokens + r.completion_tokens) filter (where ${ENDED}) as tokens`;
/** The same rule as `isSameScore`. */
const ALL_SAME = `most - least <= ${SCORE_TOLERANCE} * max(1, abs(least), abs(most))`;
const VARIANCE = `case when rewards < 2 then null when ${ALL_SAME} then 0
  else max(0, (squares - rewards * mean * mean) / (rewards - 1)) end`;
const VALUES: { readonly [Sort in GroupSort]: string } = {
  group: "group_index",
  reward: "mean",
  reward_sd: VARIANCE,
  turns: "turns",
  tokens: "tokens",
};

export function groupSlice(listed: Listed, ask: ListAsk<"groups">): ListAnswer<"groups"> {
  const { store, sql, spec } = listed;
  const { terms, sort, after, slice, limit, rows: scanned = SCANNED } = ask;
  makeTexts(sql, terms);
  const [{ last = null } = {}] = sql
    .exec<{ last: number | null }>("select max(group_index) as last from rollouts")
    .toArray();
  const size = Math.max(1, Math.floor(scanned / largestGroup(spec)));
  const slices = last === null ? 0 : Math.floor(last / size) + 1;
  const place = sort.descending && sort.by === "group" ? slices - 1 - slice : slice;
  const bound = new Bound();
  const range = `r.group_index >= ${bound.add(place * size)} and r.group_index < ${bound.add((place + 1) * size)}`;
  const condition = conditionOf(terms, bound, stopsAll(store.head()));
  const inner = `select ${NUMBERS} from rollouts r where ${range} group by r.group_index having max(${condition}) = 1`;
  const direction = sort.descending ? "desc" : "asc";
  const behind = after === null ? "1" : behindIn(after, sort.descending, bound);
  const rows = sql.exec<GroupRow>(
    `${withTraining(inner, VALUES[sort.by])} where ${behind}
      order by value is null, value ${direction}, n.group_index ${direction} limit ${limit}`,
    ...bound.values,
  );
  return { rows: Array.from(rows, groupOf), slices };
}

function withTraining(inner: string, value: string): string {
  return `select * from (select n.*, ${VARIANCE} as variance, ${value} as value from (${inner}) n) n
    left join (select group_index as trained, state, reason, step, dispatch_version, max_version from train_groups) g
      on g.trained = n.group_index`;
}

/** Groups without the number come last in both directions. */
function behindIn(
  { value, group }: NonNullable<ListAsk<"groups">["after"]>,
  descending: boolean,
  bound: Bound,
): string {
  const op = descending ? "<" : ">";
  const at = bound.add(group);
  if (value === null) return `value is null and n.group_index ${op} ${at}`;
  const from = bound.add(value);
  return `(value is null or value ${op} ${from} or (value = ${from} and n.group_index ${op} ${at}))`;
}

function groupOf(row: GroupRow): ListedGroup {
  const { dispatched, in_flight, scored, unscored, failed, cancelled, superseded } = row;
  const { state, dispatch_version } = row;
  const training =
    state === null || dispatch_version === null
      ? null
      : { state, reason: row.reason, step: row.step, dispatch_version, max_version: row.max_version };
  return {
    value: row.value,
    ...{ group: row.group_index, example_id: row.example_id, member: row.member },
    ...{ task_key: row.task_key, task_text: row.task_text },
    counts: { dispatched, in_flight, scored, unscored, failed, cancelled, superseded },
    reward: {
      mean: row.mean,
      min: row.least,
      max: row.most,
      sd: row.variance === null ? null : Math.sqrt(row.variance),
    },
    zero_variance: row.variance !== null && isSameScore(row.least ?? 0, row.most ?? 0),
    mean_turns: row.turns,
    mean_tokens: row.tokens,
    training,
  };
}

export function groupRecord(listed: Listed, index: number): ListAnswer<"group"> {
  const inner = `select ${NUMBERS} from rollouts r where r.group_index = ?1 group by r.group_index`;
  const [row] = listed.sql.exec<GroupRow>(withTraining(inner, VALUES.group), index).toArray();
  if (row === undefined) return { found: null };
  const group = groupOf(row);
  const members = membersOf(listed, index, LIMITS.groupMembersShown);
  const { dispatched, superseded } = group.counts;
  return {
    found: {
      group,
      members,
      members_left_out: dispatched + superseded - members.length,
      batch: batchOf(listed, group.training?.step ?? null),
    },
  };
}

/** A step may have been cut several times: all batches but the last are void. */
function batchOf({ sql }: Listed, step: number | null): GroupRecord["batch"] {
  if (step === null) return null;
  const query = `select batch_id as id, step, state, groups, rollouts from train_batches
    where step = ? and state != 'void' order by generation desc limit 1`;
  const rows = sql.exec<NonNullable<GroupRecord["batch"]> & Record<string, SqlStorageValue>>(query, step).toArray();
  return rows[0] ?? null;
}
