/** The page of one rollout: its turns, its scores and their basis, and its actions. */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { useAddress, useParam } from "../../address.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { TaskLine } from "../../components/task-name.tsx";
import { useKeys } from "../../layout/keys.tsx";
import { useDocumentTitle } from "../../layout/title.ts";
import { RolloutActions } from "./actions.tsx";
import { Evidence, OutcomeLine } from "./evidence.tsx";
import { FinalResponse } from "./final-response.tsx";
import { Neighbours } from "./neighbours.tsx";
import { Reviews } from "./reviews.tsx";
import { Timeline } from "./timeline.tsx";
import { copyTurn } from "./turn.tsx";
import { TurnList, type TurnListHandle } from "./turn-list.tsx";
import { Verdicts } from "./verdicts.tsx";
import "./rollout.css";

/** How often a rollout in progress is read again. */
const LIVE_MS = 2000;
/** If a rollout has at most this many turns when the page opens, all of them are open; otherwise none is. */
const MOST_OPENED = 200;

export function Page() {
  const id = useParam("id");
  useDocumentTitle(`rollout ${id.slice(-8)}`);
  const { data, error, refetch } = useQuery({
    queryKey: ["rollout", id],
    queryFn: ({ signal }) => api.rollouts.head(id, { signal }),
    refetchInterval: ({ state }) => (state.data?.status === "done" ? false : LIVE_MS),
  });
  return (
    <main>
      <h1 className="rollout-title">
        Rollout <code>{id}</code>
      </h1>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what="the rollout" />}
      {data !== undefined && <RolloutView key={id} head={data} />}
    </main>
  );
}

function RolloutView({ head }: { readonly head: RolloutHead }) {
  const form = useRef<HTMLSelectElement>(null);
  return (
    <>
      <TaskLine task={head} />
      <Neighbours head={head} />
      <OutcomeLine head={head} />
      <Verdicts head={head} form={form} />
      <RolloutActions head={head} />
      <div className="rollout">
        <Turns head={head} />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by its focus */}
        <aside aria-label="Scores and evidence" tabIndex={0}>
          <Evidence head={head} />
          <Reviews head={head} form={form} />
        </aside>
      </div>
    </>
  );
}

/** The index of a turn whose number, from 1, was typed or is in the address; the nearest one if there is none. */
function turnIn(text: string | undefined, total: number): number {
  const number = /^\d{1,9}$/.test(text ?? "") ? Number(text) : 1;
  return Math.max(0, Math.min(number, total) - 1);
}

/** Which turns are open: all or none, except those that the reader has toggled. */
function useOpened(total: number) {
  const [state, setState] = useState({ all: total <= MOST_OPENED, others: new Set<number>() });
  return {
    isOpen: (turn: number) => state.all !== state.others.has(turn),
    toggle: (turn: number) => {
      const others = new Set(state.others);
      if (!others.delete(turn)) others.add(turn);
      setState({ all: state.all, others });
    },
    all: (all: boolean) => setState({ all, others: new Set() }),
  };
}

function Turns({ head }: { readonly head: RolloutHead }) {
  const [search, change] = useAddress();
  const chosen = turnIn(search["turn"], head.n_turns);
  const first = useRef(chosen);
  const [top, setTop] = useState(chosen);
  const [markdown, setMarkdown] = useState(false);
  const [message, setMessage] = useState("");
  const opened = useOpened(head.n_turns);
  const list = useRef<TurnListHandle>(null);
  const goTo = (turn: number) => list.current?.goTo(Math.max(0, Math.min(turn, head.n_turns - 1)));
  const choose = useCallback((turn: number) => change({ turn: String(turn + 1) }), [change]);
  const copy = () => {
    copyTurn(head.id, chosen).then(
      () => setMessage(`Turn ${chosen + 1} was copied`),
      () => setMessage("Copying failed"),
    );
  };
  useKeys([
    { keys: "j", label: "next turn", run: () => goTo(chosen + 1) },
    { keys: "k", label: "previous turn", run: () => goTo(chosen - 1) },
    { keys: "[", label: "first turn", run: () => goTo(0) },
    { keys: "]", label: "last turn", run: () => goTo(head.n_turns - 1) },
    { keys: "o", label: "open or close the turn", run: () => opened.toggle(chosen) },
    { keys: "e", label: "expand all turns", run: () => opened.all(true) },
    { keys: "x", label: "collapse all turns", run: () => opened.all(false) },
    { keys: "m", label: "toggle Markdown and mathematics", run: () => setMarkdown(!markdown) },
    { keys: "c", label: "copy the turn", run: copy },
  ]);
  if (head.n_turns === 0) {
    return (
      <section aria-label="Turns">
        <p className="soft">{head.status === "done" ? "It ended before its first turn." : "No turns yet."}</p>
        <FinalResponse head={head} />
      </section>
    );
  }
  return (
    <section className="turns" aria-label="Turns">
      <h2 className="visually-hidden">Turns</h2>
      <Timeline head={head} turn={chosen} onTurn={goTo} />
      <div className="turn-bar">
        <TurnNumber turn={top} total={head.n_turns} onTurn={goTo} />
        <button type="button" onClick={() => goTo(0)}>
          First
        </button>
        <button type="button" onClick={() => goTo(head.n_turns - 1)}>
          Last
        </button>
        <button type="button" onClick={() => opened.all(true)}>
          Expand all
        </button>
        <button type="button" onClick={() => opened.all(false)}>
          Collapse all
        </button>
        <button type="button" aria-pressed={markdown} onClick={() => setMarkdown(!markdown)}>
          Markdown
        </button>
        <span role="status" className="soft">
          {message}
        </span>
      </div>
      <TurnList
        head={head}
        ref={list}
        first={first.current}
        turn={chosen}
        isOpen={opened.isOpen}
        onToggle={opened.toggle}
        markdown={markdown}
        onTop={setTop}
        onChoose={choose}
      />
      <FinalResponse head={head} />
    </section>
  );
}

interface TurnNumberProps {
  readonly turn: number;
  readonly total: number;
  readonly onTurn: (turn: number) => void;
}

function TurnNumber({ turn, total, onTurn }: TurnNumberProps) {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== null && typed !== "") onTurn(turnIn(typed, total));
        setTyped(null);
      }}
    >
      <label>
        Turn{" "}
        <input
          type="number"
          min={1}
          max={total}
          value={typed ?? String(turn + 1)}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={() => setTyped(null)}
        />
      </label>
      <span className="soft">of {countText(total)}</span>
    </form>
  );
}
