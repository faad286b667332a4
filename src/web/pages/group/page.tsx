/**
 * One group: its members side by side, the result of each, and the turn from which they differ. Cancelled, failed and
 * superseded members are shown as such; a member without a reward shows none.
 */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { GroupView, RolloutSummary } from "../../../contract/rollout-list.ts";
import { stopText } from "../../../contract/stop-text.ts";
import { useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { Badge } from "../../components/badge.tsx";
import { rolloutCutText } from "../../components/cut-off.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Fact, Facts } from "../../components/facts.tsx";
import { countText, durationText, NOTHING, numberText, scoreText, words } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { Stat, Stats } from "../../components/stat.tsx";
import { TaskLine } from "../../components/task-name.tsx";
import { useKeys } from "../../layout/keys.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { FailedTools } from "./failed-tools.tsx";
import { FirstDifference } from "./first-difference.tsx";
import "./group.css";

const REFETCH_MS = 3000;

export function Page() {
  const runId = useParam("id");
  const group = Number(useParam("group"));
  useDocumentTitle(`Group ${group}`);
  const { data, error, refetch } = useQuery({
    queryKey: ["run", runId, "group", group],
    queryFn: ({ signal }) => api.runs.groups.get(runId, group, { signal }),
    refetchInterval: ({ state }) => ((state.data?.counts.in_flight ?? 0) > 0 ? REFETCH_MS : false),
  });
  useNeighbours(runId, group);
  return (
    <main>
      <p>
        <Link to="/runs/$id" params={{ id: runId }} search={{}}>
          Run <code>{runId}</code>
        </Link>
      </p>
      <h1>Group {countText(group)}</h1>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="the group" />}
      {data !== undefined && <Group group={data} />}
    </main>
  );
}

function useNeighbours(runId: string, group: number): void {
  const navigate = useNavigate();
  const go = (to: number) => {
    if (to < 0) return;
    const params = { id: runId, group: String(to) };
    navigate({ to: "/runs/$id/groups/$group", params, search: {} }).catch(reportError);
  };
  useKeys([
    { keys: "n", label: "next group", run: () => go(group + 1) },
    { keys: "p", label: "previous group", run: () => go(group - 1) },
  ]);
}

function Group({ group }: { readonly group: GroupView }) {
  const { counts, reward, training, batch } = group;
  const current = group.members.filter(({ superseded_by }) => superseded_by === null);
  const earlier = group.members.length - current.length;
  const [all, setAll] = useState(false);
  return (
    <>
      <TaskLine task={group} />
      <p className="row">
        <GroupState group={group} />
        {group.zero_variance && <Badge state="zero variance" tone="warn" />}
      </p>
      <Stats>
        <Stat
          name="Reward"
          value={scoreText(reward.mean)}
          behind={`mean of ${countText(counts.scored)} scored of ${countText(counts.dispatched)}; ${scoreText(reward.min)} to ${scoreText(reward.max)}`}
        />
        <Stat name="Spread" value={scoreText(reward.sd)} behind="standard deviation of scored members" />
        <Stat
          name="Without a reward"
          value={countText(counts.unscored + counts.failed + counts.cancelled)}
          behind={`${countText(counts.unscored)} unscored, ${countText(counts.failed)} failed, ${countText(counts.cancelled)} cancelled`}
        />
      </Stats>
      <Facts>
        <Fact name="Task">
          <code>
            <Shown text={[group.member, group.task_key].filter(Boolean).join(" ") || NOTHING} />
          </code>
        </Fact>
        {training !== null && (
          <>
            <Fact name="Dispatched with">version {training.dispatch_version}</Fact>
            <Fact name="Sampled with at most">
              {training.max_version === null ? "unknown yet" : `version ${training.max_version}`}
            </Fact>
            {training.state === "dropped" && <Fact name="Dropped">{words(training.reason ?? "no reason given")}</Fact>}
          </>
        )}
        {batch !== null && (
          <Fact name="Batch">
            step {batch.step}, {words(batch.state)}: {countText(batch.groups)} groups, {countText(batch.rollouts)}{" "}
            rollouts
          </Fact>
        )}
      </Facts>
      <h2>Members</h2>
      {earlier > 0 && (
        <label className="row">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} />
          {countText(earlier)} earlier {earlier === 1 ? "attempt" : "attempts"} too
        </label>
      )}
      <Members members={all ? group.members : current} />
      <FailedTools members={current} />
      <FirstDifference members={current} />
    </>
  );
}

/** One row of the table of members, which has a column per member. */
interface Line {
  readonly name: string;
  readonly cell: (member: RolloutSummary) => React.ReactNode;
}

const LINES: readonly Line[] = [
  { name: "Outcome", cell: (member) => <MemberState member={member} /> },
  { name: "Reward", cell: ({ reward }) => <strong>{scoreText(reward)}</strong> },
  { name: "Advantage", cell: ({ advantage }) => scoreText(advantage) },
  { name: "Stopped by", cell: ({ stop_condition }) => words(stopText(stop_condition ?? NOTHING)) },
  { name: "Turns", cell: ({ turns }) => numberText(turns) },
  { name: "Tokens sampled", cell: ({ completion_tokens }) => numberText(completion_tokens) },
  { name: "Took", cell: ({ duration }) => durationText(duration) },
  {
    name: "Error",
    cell: ({ error }) => (error === null ? "none" : <Shown text={`${error.error}: ${error.message}`} />),
  },
];

function Members({ members }: { readonly members: readonly RolloutSummary[] }) {
  const names = [...new Set(members.flatMap(({ scores }) => scores.map(({ name }) => name)))];
  const lines: readonly Line[] = [
    ...LINES.slice(0, 3),
    ...names.map((name) => ({
      name,
      cell: ({ scores }: RolloutSummary) => scoreText(scores.find((one) => one.name === name)?.score),
    })),
    ...LINES.slice(3),
  ];
  return (
    <Scroll label="The rollouts of the group">
      <table className="members">
        <thead>
          <tr>
            <th scope="col">Member</th>
            {members.map((member) => (
              <th key={member.id} scope="col">
                <Link to="/rollouts/$id" params={{ id: member.id }} search={{}}>
                  {member.slot}
                  {member.attempt > 0 && ` (attempt ${member.attempt})`}
                </Link>
                <RewardBar reward={member.reward} all={members} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ name, cell }) => (
            <tr key={name}>
              <th scope="row">
                <Shown text={name} />
              </th>
              {members.map((member) => (
                <td key={member.id}>{cell(member)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function MemberState({ member }: { readonly member: RolloutSummary }) {
  const { outcome, status, reason, superseded_by, is_truncated, stop_condition } = member;
  return (
    <>
      <Badge state={outcome ?? status} />
      {reason !== null && <span className="soft"> {words(reason)}</span>}
      {is_truncated && <span className="soft"> {rolloutCutText(stop_condition)}</span>}
      {superseded_by !== null && <span className="soft"> replaced by a later attempt</span>}
    </>
  );
}

/** The reward as a bar, on a scale from the smallest to the largest of the group. The number is below it. */
function RewardBar({ reward, all }: { readonly reward: number | null; readonly all: readonly RolloutSummary[] }) {
  const known = all.flatMap((one) => (one.reward === null ? [] : [one.reward]));
  if (reward === null || known.length === 0) return null;
  const low = Math.min(0, ...known);
  const high = Math.max(...known, low + Number.EPSILON);
  return (
    <span className="reward-bar" aria-hidden="true">
      <span style={{ width: `${(100 * (reward - low)) / (high - low)}%` }} />
    </span>
  );
}

function GroupState({ group }: { readonly group: GroupView }) {
  const { training, counts } = group;
  if (training?.state === "dropped") return <Badge state={`dropped: ${words(training.reason ?? "")}`} tone="warn" />;
  if (training !== null) return <Badge state={training.state} tone={training.state === "shipped" ? "good" : "busy"} />;
  return counts.in_flight > 0 ? <Badge state="running" /> : <Badge state="ended" tone="good" />;
}
