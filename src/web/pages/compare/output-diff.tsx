/**
 * The outputs of two rollouts of one task side by side, a row for each turn. What only one of them has is marked on its
 * side, word by word or sentence by sentence.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { MessageBeginning, ShownTurn } from "../../../contract/turns.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { type Divergence, divergenceOf } from "../group/divergence.ts";
import { inOrder } from "../rollout/in-order.ts";
import { type TextPart, textDifference, UNITS, type Unit } from "./text-difference.ts";

/** The most turns that are read of each, from the first; and the most characters of each turn that are compared. */
const TURNS = 20;
const COMPARED = 10_000;

interface OutputDiffProps {
  /** Ids of rollouts. */
  readonly baseline: string;
  readonly run: string;
}

export function OutputDiff({ baseline, run }: OutputDiffProps) {
  const [search, change] = useAddress();
  const unit = UNITS.find((one) => one === search["diff"]) ?? "word";
  const { data, error, refetch } = useQuery({
    queryKey: ["output-diff", baseline, run],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        [baseline, run].map((id) => api.rollouts.turns.list(id, { limit: TURNS }, { signal })),
      );
      return pages.map(({ data: turns, n_turns }) => ({ turns, n_turns }));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  const [old, fresh] = data ?? [];
  if (old === undefined || fresh === undefined) return <Loading what="the outputs" />;
  const apart = divergenceOf([old.turns, fresh.turns]);
  const rows = Math.max(old.turns.length, fresh.turns.length);
  return (
    <>
      <div className="row spread">
        <FirstDifference ids={{ baseline, run }} apart={apart} />
        <label className="row">
          Differences by
          <select value={unit} onChange={({ target }) => change({ diff: target.value })}>
            {UNITS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      <Scroll label="Outputs side by side">
        <table className="side-by-side">
          <thead>
            <tr>
              <th scope="col">Turn</th>
              <th scope="col">Baseline</th>
              <th scope="col">Run</th>
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: rows }, (_, turn) => turn).map((turn) => (
              <TurnRow key={turn} turn={turn} old={old.turns[turn]} fresh={fresh.turns[turn]} unit={unit} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {[old, fresh].some(({ n_turns, turns }) => n_turns > turns.length) && (
        <p className="soft">Later turns are not compared here.</p>
      )}
    </>
  );
}

interface FirstDifferenceProps {
  readonly ids: { readonly baseline: string; readonly run: string };
  readonly apart: Divergence | null;
}

/** Links to the first turn that differs. */
function FirstDifference({ ids, apart }: FirstDifferenceProps) {
  if (apart === null) return <p>All turns that were read are the same.</p>;
  const number = apart.turn + 1;
  const at = { turn: String(number) };
  return (
    <p>
      {apart.turn === 0 ? "Their first turns differ" : `They are the same up to turn ${apart.turn}`}: the{" "}
      <Link to="/rollouts/$id" params={{ id: ids.baseline }} search={at as never}>
        baseline's turn {number}
      </Link>
      , the{" "}
      <Link to="/rollouts/$id" params={{ id: ids.run }} search={at as never}>
        run's turn {number}
      </Link>
      .
    </p>
  );
}

interface TurnRowProps {
  readonly turn: number;
  readonly old: ShownTurn | undefined;
  readonly fresh: ShownTurn | undefined;
  readonly unit: Unit;
}

function TurnRow({ turn, old, fresh, unit }: TurnRowProps) {
  const [before, now] = [outputOf(old), outputOf(fresh)];
  const parts = useMemo(() => textDifference(before.text, now.text, unit), [before.text, now.text, unit]);
  return (
    <tr>
      <th scope="row" className="numeric">
        {countText(turn + 1)}
      </th>
      <td>
        {old === undefined ? <i className="soft">it has no such turn</i> : <Output {...before} parts={parts.old} />}
      </td>
      <td>
        {fresh === undefined ? (
          <i className="soft">it has no such turn</i>
        ) : (
          <Output {...now} parts={parts.fresh} isFresh />
        )}
      </td>
    </tr>
  );
}

interface OutputText {
  readonly text: string;
  /** The number of characters that are not compared. */
  readonly left: number;
}

interface OutputProps extends OutputText {
  readonly parts: readonly TextPart[];
  readonly isFresh?: boolean;
}

function Output({ parts, left, isFresh = false }: OutputProps) {
  return (
    <>
      <pre className="shown difference">
        {inOrder(parts).map(({ place, item: { text, changed } }) => {
          const Mark = !changed ? "span" : isFresh ? "ins" : "del";
          return (
            <Mark key={place}>
              <Shown text={text} most={COMPARED} />
            </Mark>
          );
        })}
      </pre>
      {left > 0 && <p className="soft">{countText(left)} more characters are not compared.</p>}
    </>
  );
}

function outputOf(turn: ShownTurn | undefined): OutputText {
  if (turn === undefined) return { text: "", left: 0 };
  const text = textOf(turn.completion);
  return { text: text.slice(0, COMPARED), left: Math.max(0, text.length - COMPARED) };
}

function textOf({ content, tool_calls = [] }: MessageBeginning): string {
  const calls = tool_calls.map(({ name, arguments: given }) => `${name}(${given.text})`);
  return [...content.map(({ text }) => text), ...calls].join("\n");
}
