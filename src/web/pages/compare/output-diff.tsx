/**
 * The outputs of two rollouts of one task, as insertions and deletions, word by word. Marks and words tell the two
 * apart.
 */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { diffWordsWithSpace } from "diff";
import { useMemo } from "react";
import type { MessageBeginning, ShownTurn } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { Loading } from "../../components/loading.tsx";
import { Shown, ShownBlock } from "../../components/shown.tsx";
import { type Divergence, divergenceOf } from "../group/divergence.ts";

/** The most turns that are read of each, from the first; and the most characters that are compared. */
const TURNS = 20;
const COMPARED = 20_000;
/**
 * In milliseconds: if the comparison takes longer, the texts have little in common and are shown side by side instead.
 */
const PATIENCE = 500;

interface OutputDiffProps {
  /** Ids of rollouts. */
  readonly baseline: string;
  readonly run: string;
}

export function OutputDiff({ baseline, run }: OutputDiffProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ["output-diff", baseline, run],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        [baseline, run].map((id) => api.rollouts.turns.list(id, { limit: TURNS }, { signal })),
      );
      return pages.map(({ data: turns, n_turns }) => ({ turns, text: shownTextOf(turns), n_turns }));
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  const [old, fresh] = data ?? [];
  if (old === undefined || fresh === undefined) return <Loading what="the outputs" />;
  const cut = [old, fresh].some(({ text, n_turns }) => text.length > COMPARED || n_turns > TURNS);
  return (
    <>
      <WentApart ids={{ baseline, run }} apart={divergenceOf([old.turns, fresh.turns])} />
      <Difference old={old.text.slice(0, COMPARED)} fresh={fresh.text.slice(0, COMPARED)} />
      {cut && (
        <p className="soft">
          Compares the first {TURNS} turns and {COMPARED.toLocaleString("en")} characters of each.
        </p>
      )}
    </>
  );
}

interface WentApartProps {
  readonly ids: { readonly baseline: string; readonly run: string };
  readonly apart: Divergence | null;
}

/** Links to the first turn that differs. */
function WentApart({ ids, apart }: WentApartProps) {
  if (apart === null) return null;
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
      . Text only in the baseline is struck out.
    </p>
  );
}

function shownTextOf(turns: readonly ShownTurn[]): string {
  return turns.map(({ completion }) => textOf(completion)).join("\n\n");
}

function textOf({ content, tool_calls = [] }: MessageBeginning): string {
  const calls = tool_calls.map(({ name, arguments: given }) => `${name}(${given.text})`);
  return [...content.map(({ text }) => text), ...calls].join("\n");
}

function Difference({ old, fresh }: { readonly old: string; readonly fresh: string }) {
  const parts = useMemo(() => diffWordsWithSpace(old, fresh, { timeout: PATIENCE }), [old, fresh]);
  if (old === fresh) return <p>Both outputs are the same.</p>;
  if (parts === undefined) {
    return (
      <div className="columns">
        <section aria-label="Baseline">
          <ShownBlock text={old} />
        </section>
        <section aria-label="Run">
          <ShownBlock text={fresh} />
        </section>
      </div>
    );
  }
  return (
    <pre className="shown difference">
      {parts.map(({ value, added, removed }, index) => {
        const text = <Shown text={value} most={COMPARED} />;
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a difference have no name but their place
        if (removed) return <del key={index}>{text}</del>;
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        if (added) return <ins key={index}>{text}</ins>;
        // biome-ignore lint/suspicious/noArrayIndexKey: as above
        return <span key={index}>{text}</span>;
      })}
    </pre>
  );
}
