/**
 * Shows when each turn was sampled and how long it took: a wide bar was slow, and the gaps are the environment's time.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, durationText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { colourOf, onThemeChange } from "../../layout/theme.ts";
import { type OutlineData, turnAt } from "./outline.ts";
import { useOutline } from "./outline-data.ts";

const HEIGHT = 56;
/** The lower end of every bar. */
const FOOT = HEIGHT - 12;
/** Each is taller than the one before, and has another colour. */
const KINDS = [
  { colour: "--series-0", top: 20, description: "a call; its width is its duration" },
  { colour: "--series-1", top: 10, description: "slow: at least half as long as the slowest" },
  { colour: "--bad", top: 4, description: "with a try or a result that failed" },
] as const;

interface TimelineProps {
  readonly head: RolloutHead;
  readonly turn: number;
  readonly onTurn: (turn: number) => void;
}

export function Timeline({ head, turn, onTurn }: TimelineProps) {
  const { data, error, refetch } = useOutline(head);
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  return (
    <section aria-label="Timeline" className="timeline">
      <div className="canvas">
        {data === undefined ? <Loading what="the timeline" /> : <Bars data={data} turn={turn} onTurn={onTurn} />}
      </div>
      {data !== undefined && (
        <div className="axis soft" aria-hidden="true">
          <span>0 s</span>
          <span>{durationText((data.to - data.from) / 1000)}</span>
        </div>
      )}
      {data !== undefined && <Legend />}
      {data !== undefined && <Marks data={data} onTurn={onTurn} />}
    </section>
  );
}

function Bars({ data, turn, onTurn }: { readonly data: OutlineData } & Pick<TimelineProps, "turn" | "onTurn">) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const parent = canvas.current?.parentElement;
    if (!parent) return;
    setWidth(parent.clientWidth);
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(parent);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const place = canvas.current;
    if (place === null || width === 0) return;
    const drawn = { data, turn, width };
    draw(place, drawn);
    return onThemeChange(() => draw(place, drawn));
  }, [data, turn, width]);
  const { from, to } = data;
  const label = `${countText(data.at.length)} turns over ${durationText((to - from) / 1000)}; the slowest and those with errors are listed below`;
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={label}
      height={HEIGHT}
      width={Math.max(1, width)}
      onClick={({ nativeEvent: { offsetX } }) =>
        onTurn(turnAt(data, from + (offsetX / Math.max(1, width)) * (to - from)))
      }
    />
  );
}

interface Drawn {
  readonly data: OutlineData;
  readonly turn: number;
  readonly width: number;
}

function draw(canvas: HTMLCanvasElement, { data, turn, width }: Drawn): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  const { at, took, failed, from, to, slowest } = data;
  const slow = Math.max(1, (slowest[0]?.ms ?? 0) / 2);
  const x = (ms: number) => ((ms - from) / Math.max(1, to - from)) * width;
  context.clearRect(0, 0, width, HEIGHT);
  const colours = KINDS.map(({ colour }) => colourOf(colour));
  for (const [index, end] of at.entries()) {
    const ms = took[index] ?? 0;
    const kind = failed[index] === 1 ? 2 : Number(ms >= slow);
    const top = KINDS[kind]?.top ?? 0;
    const left = x(end - ms);
    context.fillStyle = colours[kind] ?? "";
    context.fillRect(left, top, Math.max(1, x(end) - left), FOOT - top);
  }
  context.fillStyle = colourOf("--ink");
  context.fillRect(x(at[turn] ?? 0) - 1, 0, 2, HEIGHT);
}

/** A bar of each kind, in its height, side by side. */
function Legend() {
  return (
    <ul className="row marks plain soft" aria-label="Legend of the timeline">
      {KINDS.map(({ colour, top, description }) => (
        <li key={colour}>
          <svg width="10" height={(FOOT - top) / 2} aria-hidden="true">
            <rect width="10" height="100%" fill={`var(${colour})`} />
          </svg>{" "}
          {description}
        </li>
      ))}
      <li>
        <svg width="2" height={FOOT / 2} aria-hidden="true">
          <rect width="2" height="100%" fill="var(--ink)" />
        </svg>{" "}
        the selected turn
      </li>
      <li>gaps: time of the environment</li>
    </ul>
  );
}

function Marks({ data, onTurn }: { readonly data: OutlineData } & Pick<TimelineProps, "onTurn">) {
  const { slowest, failures, failures_left_out } = data;
  return (
    <>
      <p className="row marks">
        <span className="soft">Slowest calls:</span>
        {slowest.map(({ index, ms }) => (
          <button key={index} type="button" className="link" onClick={() => onTurn(index)}>
            turn {index + 1}, {durationText(ms / 1000)}
          </button>
        ))}
      </p>
      {failures.length > 0 && (
        <p className="row marks">
          <span className="soft">Failed:</span>
          {failures.map(({ index, why }) => (
            <button key={index} type="button" className="link" title={why} onClick={() => onTurn(index)}>
              turn {index + 1}
            </button>
          ))}
          {failures_left_out > 0 && <span className="soft">and {countText(failures_left_out)} more</span>}
        </p>
      )}
    </>
  );
}
