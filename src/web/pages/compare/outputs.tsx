/**
 * The outputs of one task's rollouts side by side, a row for each turn. What only one of two chosen rollouts has is
 * marked on its side, word by word or sentence by sentence.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { allSeen } from "../../../contract/shown-text.ts";
import type { MessageBeginning, ShownTurn } from "../../../contract/turns.ts";
import { useAddress } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { divergenceOf } from "../group/divergence.ts";
import { inOrder } from "../rollout/in-order.ts";
import type { Asked } from "./asked.ts";
import { pairOf } from "./pair.ts";
import { type TextPart, textDifference, UNITS, type Unit } from "./text-difference.ts";

/** The most turns that are read of each, from the first; and the most characters of each turn that are compared. */
const TURNS = 20;
const COMPARED = 10_000;
/** Characters of a name. */
const NAME = 60;

/** One run's rollout of the task. */
export interface Side {
  readonly run: string;
  readonly name: string;
  readonly rollout: string;
}

interface OutputsProps {
  /** Baselines before candidates. */
  readonly sides: readonly Side[];
  readonly asked: Pick<Asked, "first" | "role">;
}

interface ReadSide extends Side {
  readonly turns: readonly ShownTurn[];
  readonly n_turns: number;
}

export function Outputs({ sides, asked }: OutputsProps) {
  const ids = sides.map(({ rollout }) => rollout);
  const { data, error, refetch } = useQuery({
    queryKey: ["outputs", ...ids],
    queryFn: ({ signal }) => Promise.all(ids.map((id) => api.rollouts.turns.list(id, { limit: TURNS }, { signal }))),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what="the outputs" />;
  const read = sides.flatMap((side, at): ReadSide[] => {
    const page = data[at];
    return page === undefined ? [] : [{ ...side, turns: page.data, n_turns: page.n_turns }];
  });
  return <SideBySide sides={read} asked={asked} />;
}

interface SideBySideProps extends OutputsProps {
  readonly sides: readonly ReadSide[];
}

function SideBySide({ sides, asked: { first, role } }: SideBySideProps) {
  const [search] = useAddress();
  const unit = UNITS.find((one) => one === search["diff"]) ?? "word";
  const pair = pairOf(sides, { first, role, from: search["from"], to: search["to"] });
  if (pair === null) return <p>No other run has a scored rollout of this task.</p>;
  const { old, fresh, rest } = pair;
  const rows = Math.max(...sides.map(({ turns }) => turns.length));
  const all = [old, fresh, ...rest];
  return (
    <>
      <div className="row spread">
        <FirstDifference old={old} fresh={fresh} />
        <PairChoice sides={sides} old={old} fresh={fresh} unit={unit} />
      </div>
      <Scroll label="Outputs side by side">
        <table className="side-by-side" style={{ minWidth: `${all.length * 11}rem` }}>
          <thead>
            <tr>
              <th scope="col">Turn</th>
              {all.map(({ run, name }) => (
                <th key={run} scope="col">
                  <Shown text={name} most={NAME} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: rows }, (_, turn) => turn).map((turn) => (
              <TurnRow
                key={turn}
                turn={turn}
                old={old.turns[turn]}
                fresh={fresh.turns[turn]}
                rest={rest.map(({ run, turns }) => ({ run, shown: turns[turn] }))}
                unit={unit}
              />
            ))}
          </tbody>
        </table>
      </Scroll>
      {sides.some(({ n_turns, turns }) => n_turns > turns.length) && (
        <p className="soft">Later turns are not compared here.</p>
      )}
    </>
  );
}

interface PairProps {
  readonly old: ReadSide;
  readonly fresh: ReadSide;
}

/** Which two of several runs have their differences marked, and by what. */
function PairChoice({
  sides,
  old,
  fresh,
  unit,
}: PairProps & { readonly sides: readonly ReadSide[]; readonly unit: Unit }) {
  const [, change] = useAddress();
  // The run that the other field has is exchanged with it.
  const choose = (from: string, to: string) => change({ from, to });
  return (
    <div className="row">
      {sides.length > 2 && (
        <>
          <SideSelect
            label="Mark what differs between"
            sides={sides}
            value={old.run}
            onChange={(run) => choose(run, run === fresh.run ? old.run : fresh.run)}
          />
          <SideSelect
            label="and"
            sides={sides}
            value={fresh.run}
            onChange={(run) => choose(run === old.run ? fresh.run : old.run, run)}
          />
        </>
      )}
      <label className="row">
        Differences by
        <select value={unit} onChange={({ target }) => change({ diff: target.value })}>
          {UNITS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

interface SideSelectProps {
  readonly label: string;
  readonly sides: readonly Side[];
  readonly value: string;
  readonly onChange: (run: string) => void;
}

function SideSelect({ label, sides, value, onChange }: SideSelectProps) {
  return (
    <label className="row">
      {label}
      <select value={value} onChange={({ target }) => onChange(target.value)}>
        {sides.map(({ run, name }) => (
          <option key={run} value={run}>
            {allSeen(name.slice(0, NAME))}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Links to the first turn that differs. */
function FirstDifference({ old, fresh }: PairProps) {
  const apart = divergenceOf([old.turns, fresh.turns]);
  if (apart === null) return <p>All turns that were read are the same.</p>;
  const number = apart.turn + 1;
  const at = { turn: String(number) };
  const link = ({ name, rollout }: Side) => (
    <Link to="/rollouts/$id" params={{ id: rollout }} search={at as never}>
      turn {number} of <Shown text={name} most={NAME} />
    </Link>
  );
  return (
    <p>
      {apart.turn === 0 ? "Their first turns differ" : `They are the same up to turn ${apart.turn}`}: {link(old)},{" "}
      {link(fresh)}.
    </p>
  );
}

interface TurnRowProps {
  readonly turn: number;
  readonly old: ShownTurn | undefined;
  readonly fresh: ShownTurn | undefined;
  readonly rest: readonly { readonly run: string; readonly shown: ShownTurn | undefined }[];
  readonly unit: Unit;
}

function TurnRow({ turn, old, fresh, rest, unit }: TurnRowProps) {
  const [before, now] = [outputOf(old), outputOf(fresh)];
  const parts = useMemo(() => textDifference(before.text, now.text, unit), [before.text, now.text, unit]);
  return (
    <tr>
      <th scope="row" className="numeric">
        {countText(turn + 1)}
      </th>
      <td>{old === undefined ? <NoTurn /> : <Output {...before} parts={parts.old} />}</td>
      <td>{fresh === undefined ? <NoTurn /> : <Output {...now} parts={parts.fresh} isFresh />}</td>
      {rest.map(({ run, shown }) => {
        const plain = outputOf(shown);
        return (
          <td key={run}>
            {shown === undefined ? <NoTurn /> : <Output {...plain} parts={[{ text: plain.text, changed: false }]} />}
          </td>
        );
      })}
    </tr>
  );
}

function NoTurn() {
  return <i className="soft">it has no such turn</i>;
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
