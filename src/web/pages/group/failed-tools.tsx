/** Which tools failed in which members of a group, with the error, and a link to the turn. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { LIMITS } from "../../../contract/limits.ts";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { inOrder } from "../rollout/in-order.ts";
import { type FailedCall, failedIn, unreadText } from "../run/failed-calls.ts";
import { readEach, readFailedCalls } from "../run/read-failed-calls.ts";

/** The most members that are read, and the failing turns of each whose errors are read. */
const MEMBERS = 16;
const FAILING = 5;
/** Characters of an error. */
const QUOTED = 300;

interface MemberCalls {
  readonly member: RolloutSummary;
  readonly calls: number;
  readonly failed: readonly FailedCall[];
  /** Further turns with failed calls. */
  readonly left: number;
  /** How many of its turns were read, and how many it has. */
  readonly read: number;
  readonly turns: number;
}

export function FailedTools({ members }: { readonly members: readonly RolloutSummary[] }) {
  const played = members.filter(({ status, turns }) => status === "done" && (turns ?? 0) > 0);
  const read = played.slice(0, MEMBERS);
  const { data, error, refetch } = useQuery({
    queryKey: ["failed-tools", ...read.map(({ id }) => id)],
    queryFn: ({ signal }) => readEach(read, (member) => readMember(member, signal)),
    enabled: read.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const unread = unreadText((data ?? []).map(({ member: { slot }, ...of }) => ({ slot, ...of })));
  if (read.length === 0 || (unread === null && data?.every(({ calls }) => calls === 0))) return null;
  const failing = data?.filter(({ failed, left }) => failed.length + left > 0) ?? [];
  return (
    <section aria-labelledby="failed-tools">
      <h2 id="failed-tools">Failed tool calls</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="the tool calls" />}
      {data !== undefined && failing.length === 0 && (
        <p>{unread === null ? "No tool call failed." : "No tool call failed in the turns that were read."}</p>
      )}
      {failing.length > 0 && <FailedTable failing={failing} />}
      {unread !== null && <p className="soft">{unread}</p>}
      {read.length < played.length && <p className="soft">Of the first {countText(MEMBERS)} members.</p>}
    </section>
  );
}

async function readMember(member: RolloutSummary, signal: AbortSignal): Promise<MemberCalls> {
  const { data, n_turns } = await api.rollouts.outline(member.id, { limit: LIMITS.outlinePerPage }, { signal });
  const failing = data.filter((turn, at) => failedIn(turn, data[at + 1]) > 0);
  const shown = failing.slice(0, FAILING);
  const failed = await readEach(shown, ({ index }) => readFailedCalls(member.id, index, signal));
  return {
    member,
    calls: data.reduce((sum, { tool_calls }) => sum + tool_calls, 0),
    failed: failed.flat(),
    left: failing.length - shown.length,
    read: data.length,
    turns: n_turns,
  };
}

function FailedTable({ failing }: { readonly failing: readonly MemberCalls[] }) {
  return (
    <Scroll label="Failed tool calls">
      <table>
        <thead>
          <tr>
            {["Member", "Turn", "Tool", "Error"].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        {failing.map(({ member, failed, left }) => (
          <tbody key={member.id}>
            {inOrder(failed).map(({ place, item: { turn, tool, text } }) => (
              <tr key={place}>
                <th scope="row">{member.slot}</th>
                <td>
                  <Link to="/rollouts/$id" params={{ id: member.id }} search={{ turn: String(turn + 1) } as never}>
                    turn {countText(turn + 1)}
                  </Link>
                </td>
                <td>
                  <Shown text={tool} most={100} />
                </td>
                <td>{text === null ? <span className="soft">unknown</span> : <Shown text={text} most={QUOTED} />}</td>
              </tr>
            ))}
            {left > 0 && (
              <tr>
                <th scope="row">{member.slot}</th>
                <td colSpan={3} className="soft">
                  and {countText(left)} more turns with failed calls
                </td>
              </tr>
            )}
          </tbody>
        ))}
      </table>
    </Scroll>
  );
}
