/**
 * A line chart by uPlot, with its numbers as a table on request (and for screen readers). Each series has its own dash
 * as well as its own colour; a band between two bounds is an interval. A point without a value (null) is a gap, never
 * 0. Below the chart are the values of the point that the mouse or the arrow keys select, or else of the last point.
 * For a screen reader the chart is a slider along the horizontal axis.
 */
import { type KeyboardEvent, type MouseEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colourOf, onThemeChange } from "../layout/theme.ts";
import { numberText } from "./format.ts";
import { pointFrom, pointText, type Series, valueAt } from "./plot-point.ts";
import "./charts.css";

interface PlotProps {
  readonly title: string;
  /** The name of the horizontal axis: "step". */
  readonly x: string;
  readonly at: readonly number[];
  readonly series: readonly Series[];
  readonly height?: number;
  /** Called with the value on the horizontal axis that was clicked. */
  readonly onPick?: (x: number) => void;
  /** A value on the horizontal axis that is marked with a vertical line. */
  readonly picked?: number;
}

const DASHES: readonly number[][] = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 2, 1, 2], [3, 6]];

export function Plot(props: PlotProps) {
  const { title, x, at, series, height = 220, picked } = props;
  const heading = useId();
  const [asTable, setAsTable] = useState(false);
  const [pointed, setPointed] = useState<number | null>(null);
  const marked = picked === undefined ? -1 : at.indexOf(picked);
  const index = Math.min(pointed ?? (marked === -1 ? at.length - 1 : marked), at.length - 1);
  const empty = at.length === 0 || series.every(({ values }) => values.every((value) => value == null));
  return (
    <figure className="plot" aria-labelledby={heading}>
      <figcaption>
        <span id={heading}>{title}</span>
        <button type="button" className="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Chart" : "Numbers"}
        </button>
      </figcaption>
      {empty && <p className="soft">Nothing was measured yet.</p>}
      {!empty && asTable && <PlotTable x={x} at={at} series={series} />}
      {!empty && !asTable && (
        <>
          <Canvas {...props} height={height} index={index} onPoint={setPointed} />
          <Legend
            name={`${x} ${numberText(at[index])}`}
            isLast={pointed === null && marked === -1}
            series={series}
            index={index}
          />
        </>
      )}
    </figure>
  );
}

interface CanvasProps extends PlotProps {
  /** The index of the point whose values are shown. */
  readonly index: number;
  /** Called with the selected point; null when none is selected any more. */
  readonly onPoint: (index: number | null) => void;
}

/** Keeps a chart drawn in the element that gets the ref `place`. */
function useChart({ x, at, series, height = 220, onPoint, picked }: CanvasProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = useMemo(() => dataOf(at, series), [at, series]);
  const shape = series.map(({ name, low }) => `${name}${low === undefined ? "" : "±"}`).join("\n");
  const latest = useRef({ data, series, picked });
  latest.current = { data, series, picked };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a chart is made anew when its series are others
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const options = optionsOf(latest.current.series, x, element.clientWidth, height);
    const hooks = {
      setCursor: [({ cursor }: uPlot) => onPoint(cursor.idx ?? null)],
      draw: [(chart: uPlot) => markPicked(chart, latest.current.picked)],
    };
    const made = new uPlot({ ...options, hooks }, latest.current.data, element);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    const stop = onThemeChange(() => made.redraw(false));
    return () => {
      watch.disconnect();
      stop();
      made.destroy();
      plot.current = null;
    };
  }, [shape, x, height]);
  useEffect(() => plot.current?.setData(data), [data]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the mark is drawn again when it moves
  useEffect(() => plot.current?.redraw(false), [picked]);
  return { place, plot };
}

function Canvas(props: CanvasProps) {
  const { x, at, series, onPick, title, index, onPoint } = props;
  const { place, plot } = useChart(props);
  const point = (to: number) => {
    onPoint(to);
    // Moves the line without an event: two points may share a pixel.
    plot.current?.setCursor({ left: plot.current.valToPos(at[to] ?? 0, "x"), top: 0 }, false);
  };
  const leave = () => {
    onPoint(null);
    plot.current?.setCursor(NOWHERE, false);
  };
  const pick = (picked: number) => onPick?.(at[picked] ?? 0);
  // By the place of the click: the selected point follows the mouse only at the next frame.
  const click = ({ target, clientX }: MouseEvent) => {
    const area = isOver(target) ? plot.current?.over.getBoundingClientRect() : undefined;
    if (area !== undefined) pick(plot.current?.posToIdx(clientX - area.left) ?? index);
  };
  const press = (event: KeyboardEvent) => {
    const to = pointFrom(event.key, index, at.length);
    if (to !== null) point(to);
    else if (event.key === "Enter") pick(index);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={place}
      className="canvas"
      role="slider"
      tabIndex={0}
      aria-label={title}
      aria-valuemin={at[0]}
      aria-valuemax={at.at(-1)}
      aria-valuenow={at[index]}
      aria-valuetext={pointText(`${x} ${numberText(at[index])}`, series, index)}
      onKeyDown={press}
      onBlur={leave}
      onClick={click}
    />
  );
}

/** uPlot's cursor position when no point is selected. */
const NOWHERE = { left: -10, top: -10 };

/** True in the area between the axes. */
function isOver(target: EventTarget): boolean {
  return target instanceof Element && target.closest(".u-over") !== null;
}

/** Draws a vertical line at the picked point. */
function markPicked(chart: uPlot, picked: number | undefined): void {
  if (picked === undefined) return;
  const { ctx, bbox } = chart;
  const left = Math.round(chart.valToPos(picked, "x", true));
  ctx.save();
  ctx.strokeStyle = ink();
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.moveTo(left, bbox.top);
  ctx.lineTo(left, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

/** The columns that uPlot needs: x, then each series, then its bounds. */
function dataOf(at: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  const columns = series.flatMap(({ values, low, high }) => {
    return low === undefined || high === undefined ? [[...values]] : [[...values], [...low], [...high]];
  });
  return [[...at], ...columns];
}

/** The colours are variables of the stylesheet; they are read when the chart is drawn. */
const colour = (index: number) => colourOf(`--series-${index % 8}`);
const ink = () => colourOf("--soft-ink");
const rule = () => colourOf("--rule");
/** The allowed distances between ticks of whole numbers. */
const WHOLE = [1, 2, 5]
  .flatMap((step) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6].map((ten) => step * ten))
  .sort((a, b) => a - b);

function optionsOf(series: readonly Series[], x: string, width: number, height: number): uPlot.Options {
  const lines: uPlot.Series[] = [];
  const bands: uPlot.Band[] = [];
  for (const [index, { name, low, high }] of series.entries()) {
    const stroke = () => colour(index);
    lines.push({ label: name, stroke, width: 2, dash: DASHES[index % DASHES.length] ?? [], spanGaps: false });
    if (low === undefined || high === undefined) continue;
    const edge = { stroke, width: 0, points: { show: false } } as const;
    lines.push({ label: `${name}, low`, ...edge }, { label: `${name}, high`, ...edge });
    bands.push({ series: [lines.length, lines.length - 1], fill: () => colour(index).replace(/\)$/, ", 0.2)") });
  }
  const font = `12px ${getComputedStyle(document.documentElement).fontFamily}`;
  const grid = { stroke: rule, width: 1 } as const;
  const axis = { stroke: ink, grid, ticks: { stroke: rule, width: 1 }, font, labelFont: font } as const;
  return {
    width,
    height,
    series: [{ label: x }, ...lines],
    bands,
    scales: { x: { time: false }, y: { range: rangeOf } },
    axes: [
      { ...axis, incrs: WHOLE, label: x, labelSize: 20, size: 32 },
      { ...axis, size: 60, values: (_, ticks) => ticks.map(numberText) },
    ],
    legend: { show: false },
    cursor: { y: false },
  };
}

/** For a line that is 0 everywhere, the axis ends at 1: uPlot would extend it to 100. */
function rangeOf(_: uPlot, min: number, max: number): [number, number] {
  if (min === 0 && max === 0) return [0, 1];
  const [from, to] = uPlot.rangeNum(min, max, 0.1, true);
  return [from ?? min, to ?? max];
}

interface LegendProps {
  /** The name of the point: "step 3". */
  readonly name: string;
  readonly isLast: boolean;
  readonly series: readonly Series[];
  readonly index: number;
}

/** The name, line style and value of each series at the point. The slider above gives the same to a screen reader. */
function Legend({ name, isLast, series, index }: LegendProps) {
  return (
    <div className="legend">
      <b>
        {name}
        {isLast && ", the last"}
      </b>
      <ul>
        {series.map((one, place) => (
          <li key={one.name}>
            <svg width="28" height="8" aria-hidden="true">
              <line
                x1="0"
                y1="4"
                x2="28"
                y2="4"
                stroke={`var(--series-${place % 8})`}
                strokeWidth="2"
                strokeDasharray={DASHES[place % DASHES.length]?.join(" ")}
              />
            </svg>
            {one.name} <b className="numeric">{valueAt(one, index)}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

function PlotTable({ x, at, series }: Pick<PlotProps, "x" | "at" | "series">) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">{x}</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" className="numeric">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {at.map((value, row) => (
            <tr key={value}>
              <th scope="row">{numberText(value)}</th>
              {series.map((one) => (
                <td key={one.name} className="numeric">
                  {valueAt(one, row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
