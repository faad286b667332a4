/** The state that the environment kept after a turn, as a difference from the state after the turn before. */
import { useMemo } from "react";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { Shown } from "../../components/shown.tsx";
import { inOrder } from "./in-order.ts";
import { COMPARED, stateDifference } from "./state-difference.ts";
import { useWholeTurn } from "./turn-data.ts";

interface StateViewProps {
  readonly id: string;
  readonly turn: number;
}

export function StateView({ id, turn }: StateViewProps) {
  const now = useWholeTurn(id, turn, true);
  const before = useWholeTurn(id, turn - 1, turn > 0);
  const failed = [now, before].find(({ error }) => error !== null);
  if (failed !== undefined && failed.error !== null) {
    return <ErrorNote error={failed.error} onRetry={() => failed.refetch()} />;
  }
  if (now.data === undefined || (turn > 0 && before.data === undefined)) return <Loading what="the state" />;
  const { state } = now.data;
  if (state === null)
    return <p className="soft">The environment has not replied to this turn: there is no state yet.</p>;
  if (Object.keys(state).length === 0) return <p className="soft">The environment keeps no state.</p>;
  return <Difference turn={turn} before={before.data?.state ?? null} now={state} />;
}

interface DifferenceProps {
  readonly turn: number;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly now: Readonly<Record<string, unknown>>;
}

function Difference({ turn, before, now }: DifferenceProps) {
  const lines = useMemo(() => stateDifference(before, now), [before, now]);
  const isSame = before !== null && lines.every(({ kind }) => kind === "same" || kind === "left out");
  return (
    <section aria-label={`State after turn ${turn + 1}`}>
      <p className="soft">
        {before === null && `The environment's state after turn ${turn + 1}.`}
        {before !== null && isSame && `The environment's state is the same as after turn ${turn}.`}
        {before !== null && !isSame && `How the environment's state changed since turn ${turn}.`}
      </p>
      {!isSame && (
        <pre className="shown difference">
          {inOrder(lines).map(({ place, item: { kind, text } }) => {
            if (kind === "left out") return <i key={place}>{`… ${text} lines that are the same\n`}</i>;
            const Mark = kind === "added" ? "ins" : kind === "removed" ? "del" : "span";
            return (
              <Mark key={place}>
                <Shown text={text} most={COMPARED} />
              </Mark>
            );
          })}
        </pre>
      )}
    </section>
  );
}
