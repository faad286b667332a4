/** The first turn in which the members of a group differ, and the output of each there. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import type { ShownTurn } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Shown, ShownBlock } from "../../components/shown.tsx";
import { divergenceOf } from "./divergence.ts";

/** How many turns are read of each member, and of how many members. */
const TURNS = 20;
const MEMBERS = 16;

export function FirstDifference({ members }: { readonly members: readonly RolloutSummary[] }) {
  const ended = members.filter(({ status, turns }) => status === "done" && (turns ?? 0) > 0).slice(0, MEMBERS);
  const { data, error, refetch } = useQuery({
    queryKey: ["first-turns", ...ended.map(({ id }) => id)],
    queryFn: ({ signal }) => readFirstTurns(ended, signal),
    enabled: ended.length > 1,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (ended.length < 2) return null;
  return (
    <section>
      <h2>First difference</h2>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="their first turns" />}
      {data !== undefined && <Sides members={ended} turns={data} />}
      {ended.length < members.length && (
        <p className="soft">
          {countText(ended.length)} of {countText(members.length)} members are compared: those with a turn, the first{" "}
          {MEMBERS}.
        </p>
      )}
    </section>
  );
}

async function readFirstTurns(members: readonly RolloutSummary[], signal: AbortSignal) {
  const pages = members.map(({ id }) => api.rollouts.turns.list(id, { limit: TURNS }, { signal }));
  return (await Promise.all(pages)).map(({ data }) => data);
}

interface SidesProps {
  readonly members: readonly RolloutSummary[];
  readonly turns: readonly (readonly ShownTurn[])[];
}

function Sides({ members, turns }: SidesProps) {
  const found = divergenceOf(turns);
  if (found === null) return <p>All are the same in their first {TURNS} turns.</p>;
  return (
    <>
      <p>
        {found.turn === 0
          ? "Their first turn differs:"
          : `The first ${countText(found.turn)} turns are the same. Turn ${found.turn + 1} differs:`}
      </p>
      <div className="first-difference">
        {found.sides.map(({ turn, members: who }) => (
          <section key={who.join()} aria-label={`Members ${who.map((at) => members[at]?.slot).join(", ")}`}>
            <p>
              {who.map((at) => (
                <MemberLink key={at} member={members[at]} turn={found.turn} />
              ))}
            </p>
            {turn === null ? <p className="soft">had ended before it</p> : <TurnText turn={turn} />}
          </section>
        ))}
      </div>
    </>
  );
}

function MemberLink({ member, turn }: { readonly member: RolloutSummary | undefined; readonly turn: number }) {
  if (member === undefined) return null;
  return (
    <>
      <Link to="/rollouts/$id" params={{ id: member.id }} search={{ turn: String(turn + 1) } as never}>
        {member.slot}
      </Link>{" "}
      <span className="soft">({scoreText(member.reward)})</span>{" "}
    </>
  );
}

function TurnText({ turn }: { readonly turn: ShownTurn }) {
  const { content, tool_calls = [] } = turn.completion;
  return (
    <>
      {content.map(({ text, length }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a message have no name but their place
        <div key={index}>
          <ShownBlock text={text} />
          {length > text.length && <p className="soft">of {countText(length)} characters</p>}
        </div>
      ))}
      {tool_calls.map(({ id, name, arguments: given }) => (
        <p key={id}>
          calls <Shown text={name} /> with <Shown text={given.text} />
        </p>
      ))}
    </>
  );
}
