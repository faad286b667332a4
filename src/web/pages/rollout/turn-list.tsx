/** The list of turns; only those in view and a few around them are in the document. */
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type Ref, type RefObject, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { TurnView } from "./turn.tsx";

const [OPEN_HEIGHT, CLOSED_HEIGHT] = [260, 76];
/** Tolerance in pixels, because scroll positions and the ends of turns are rounded. */
const ROUNDED = 1;

export interface TurnListHandle {
  /** Scrolls to a turn and gives it the focus. */
  readonly goTo: (turn: number) => void;
}

interface TurnListProps {
  readonly head: RolloutHead;
  readonly ref: Ref<TurnListHandle>;
  /** The turn at which the list starts. */
  readonly first: number;
  readonly turn: number;
  readonly isOpen: (turn: number) => boolean;
  readonly onToggle: (turn: number) => void;
  readonly markdown: boolean;
  /** Called when the turn at the top of the window changes. */
  readonly onTop: (turn: number) => void;
  readonly onChoose: (turn: number) => void;
}

export function TurnList({ head, ref, first, turn, isOpen, onToggle, markdown, onTop, onChoose }: TurnListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const asked = useAsked(scroller, first);
  const virtual = useVirtualizer({
    count: head.n_turns,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (isOpen(index) ? OPEN_HEIGHT : CLOSED_HEIGHT),
    overscan: 2,
    // The chosen turn stays laid out, wherever it is: it has the focus, or gets it before it is in view.
    rangeExtractor: (range) => withTurns(defaultRangeExtractor(range), [turn, asked.turn ?? turn]),
    // Starts near the requested turn, so that turns out of view are not loaded.
    initialOffset: () => first * (isOpen(first) ? OPEN_HEIGHT : CLOSED_HEIGHT),
  });
  // Texts load later and change the height of turns above: the visible text must not move.
  virtual.shouldAdjustScrollPositionOnItemSizeChange = ({ index, end }) =>
    index < (asked.held.current ?? 0) || end <= (virtual.scrollOffset ?? 0) + ROUNDED;
  const goTo = (next: number) => {
    asked.ask(next);
    virtual.scrollToIndex(next, { align: "start" });
  };
  useImperativeHandle(ref, () => ({ goTo }));
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current || head.n_turns === 0) return;
    begun.current = true;
    if (first > 0) virtual.scrollToIndex(first, { align: "start" });
  }, [first, head.n_turns, virtual]);
  const total = virtual.getTotalSize();
  useInPlace(scroller, asked, total, (turn) => virtual.getOffsetForIndex(turn, "start")?.[0]);
  const seen = virtual.getVirtualItems();
  const offset = virtual.scrollOffset ?? 0;
  const top = seen.find(({ end }) => end > offset + 1)?.index ?? 0;
  useEffect(() => onTop(top), [top, onTop]);
  return (
    <div
      className="turn-list"
      ref={scroller}
      role="feed"
      aria-label="Turns"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by its focus
      tabIndex={0}
      {...asked.untilScrolled}
    >
      <div style={{ height: total, position: "relative" }} role="presentation">
        {seen.map(({ index, key, start }) => (
          <article
            key={key}
            ref={virtual.measureElement}
            data-index={index}
            aria-label={`turn ${index + 1}`}
            aria-posinset={index + 1}
            aria-setsize={head.n_turns}
            aria-current={index === turn}
            tabIndex={-1}
            className="turn"
            style={{ transform: `translateY(${start}px)` }}
            onFocus={() => onChoose(index)}
          >
            <TurnView
              head={head}
              index={index}
              open={isOpen(index)}
              markdown={markdown}
              onToggle={() => onToggle(index)}
            />
          </article>
        ))}
      </div>
    </div>
  );
}

/** The turn that was requested last: it gets the focus, and keeps its place until the reader scrolls. */
function useAsked(scroller: RefObject<HTMLElement | null>, first: number) {
  const [asked, setAsked] = useState<{ readonly turn: number } | null>(null);
  const held = useRef<number | null>(first);
  useEffect(() => {
    if (asked === null) return;
    scroller.current?.querySelector<HTMLElement>(`[data-index="${asked.turn}"]`)?.focus({ preventScroll: true });
  }, [asked, scroller]);
  const letGo = () => {
    held.current = null;
  };
  return {
    turn: asked?.turn,
    held,
    ask: (turn: number) => {
      held.current = turn;
      setAsked({ turn });
    },
    untilScrolled: { onWheel: letGo, onTouchMove: letGo, onPointerDown: letGo, onKeyDown: letGo },
  };
}

/** Every change of height may have moved the requested turn. */
function useInPlace(
  scroller: RefObject<HTMLElement | null>,
  { turn, held }: Pick<ReturnType<typeof useAsked>, "turn" | "held">,
  height: number,
  placeOf: (turn: number) => number | undefined,
) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: places are those of the height
  useLayoutEffect(() => {
    const list = scroller.current;
    if (list === null || turn === undefined || held.current !== turn) return;
    const place = placeOf(turn) ?? list.scrollTop;
    if (Math.abs(list.scrollTop - place) > ROUNDED) list.scrollTop = place;
  }, [height, turn]);
}

/** In turn order, which is also the order in the document. */
function withTurns(seen: readonly number[], others: readonly number[]): number[] {
  return [...new Set([...seen, ...others])].sort((a, b) => a - b);
}
