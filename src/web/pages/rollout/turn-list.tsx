/** The turns, of which only those in view and a few around them are in the document. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type Ref, useEffect, useImperativeHandle, useRef } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { TurnView } from "./turn.tsx";

const [OPEN_HEIGHT, CLOSED_HEIGHT] = [260, 76];

export interface TurnListHandle {
  /** Brings a turn into view and gives it the focus. */
  readonly goTo: (turn: number) => void;
}

interface TurnListProps {
  readonly head: RolloutHead;
  readonly ref: Ref<TurnListHandle>;
  /** Where the list begins when it appears. */
  readonly first: number;
  readonly turn: number;
  readonly isOpen: (turn: number) => boolean;
  readonly onToggle: (turn: number) => void;
  readonly markdown: boolean;
  /** The turn at the top of the window has changed. */
  readonly onTop: (turn: number) => void;
  readonly onChoose: (turn: number) => void;
}

export function TurnList({ head, ref, first, turn, isOpen, onToggle, markdown, onTop, onChoose }: TurnListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: head.n_turns,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (isOpen(index) ? OPEN_HEIGHT : CLOSED_HEIGHT),
    overscan: 2,
    // It begins about where it was asked to, so that nothing is read that nobody looks at.
    initialOffset: () => first * (isOpen(first) ? OPEN_HEIGHT : CLOSED_HEIGHT),
  });
  const goTo = (wanted: number) => {
    virtual.scrollToIndex(wanted, { align: "start" });
    focusSoon(scroller.current, wanted);
  };
  useImperativeHandle(ref, () => ({ goTo }));
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current || head.n_turns === 0) return;
    begun.current = true;
    if (first > 0) virtual.scrollToIndex(first, { align: "start" });
  }, [first, head.n_turns, virtual]);
  const seen = virtual.getVirtualItems();
  const offset = virtual.scrollOffset ?? 0;
  const top = seen.find(({ end }) => end > offset + 1)?.index ?? 0;
  useEffect(() => onTop(top), [top, onTop]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by its focus
    <div className="turn-list" ref={scroller} role="feed" aria-label="Turns" tabIndex={0}>
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="presentation">
        {seen.map(({ index, key, start }) => (
          <article
            key={key}
            ref={virtual.measureElement}
            data-index={index}
            aria-label={`turn ${index}`}
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

/** A turn that is only coming into view has its element a moment later. */
function focusSoon(scroller: HTMLElement | null, turn: number, tries = 10): void {
  const element = scroller?.querySelector<HTMLElement>(`[data-index="${turn}"]`);
  if (element) element.focus({ preventScroll: true });
  else if (tries > 0) requestAnimationFrame(() => focusSoon(scroller, turn, tries - 1));
}
