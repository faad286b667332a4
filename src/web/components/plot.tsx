/**
 * A line chart by uPlot, with the numbers it shows as a table for whoever asks (and for screen readers). A series is told
 * from another by its dash as well as its colour; a band between two bounds is an interval. A point without a value
 * (null) is a gap, never 0.
 */
import { useEffect, useId, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colourOf, onThemeChange } from "../layout/theme.ts";
import { numberText } from "./format.ts";
import "./charts.css";

export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** The bounds of its interval, point by point. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
}

interface PlotProps {
  readonly title: string;
  /** What stands on the horizontal axis: "step". */
  readonly x: string;
  readonly at: readonly number[];
  readonly series: readonly Series[];
  readonly height?: number;
  /** Called with the point on the horizontal axis that was clicked. */
  readonly onPick?: (x: number) => void;
}

const DASHES: readonly number[][] = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 2, 1, 2], [3, 6]];

export function Plot(props: PlotProps) {
  const { title, x, at, series, height = 220 } = props;
  const heading = useId();
  const [asTable, setAsTable] = useState(false);
  const empty = at.length === 0 || series.every(({ values }) => values.every((value) => value === null));
  return (
    <figure className="plot" aria-labelledby={heading}>
      <figcaption>
        <span id={heading}>{title}</span>
        <button type="button" className="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Chart" : "Numbers"}
        </button>
      </figcaption>
      {empty && <p className="soft">Nothing was measured yet.</p>}
      {!empty && (asTable ? <PlotTable x={x} at={at} series={series} /> : <Canvas {...props} height={height} />)}
      {series.length > 1 && !asTable && <Legend series={series} />}
    </figure>
  );
}

function Canvas({ x, at, series, height = 220, onPick, title }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = useMemo(() => dataOf(at, series), [at, series]);
  const shape = series.map(({ name, low }) => `${name}${low === undefined ? "" : "±"}`).join("\n");
  const pick = useRef(onPick);
  useEffect(() => {
    pick.current = onPick;
  });
  const latest = useRef({ data, series });
  latest.current = { data, series };
  // biome-ignore lint/correctness/useExhaustiveDependencies: a chart is made anew when its series are others
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot(
      optionsOf(latest.current.series, x, element.clientWidth, height),
      latest.current.data,
      element,
    );
    plot.current = made;
    const onClick = () => {
      const index = made.cursor.idx;
      const value = index == null ? undefined : made.data[0][index];
      if (value !== undefined) pick.current?.(value);
    };
    made.over.addEventListener("click", onClick);
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
  return (
    <div ref={place} className="canvas" role="img" aria-label={`${title}; its numbers are behind the button above`} />
  );
}

/** Columns as uPlot wants them: x, then each series, then its bounds. */
function dataOf(at: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  const columns = series.flatMap(({ values, low, high }) => {
    return low === undefined || high === undefined ? [[...values]] : [[...values], [...low], [...high]];
  });
  return [[...at], ...columns];
}

/** The colours are variables of the stylesheet, read when the chart is drawn. */
const colour = (index: number) => colourOf(`--series-${index % 8}`);
const ink = () => colourOf("--soft-ink");
const rule = () => colourOf("--rule");
/** Steps between two ticks of whole numbers. */
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

/** Of a line that is 0 everywhere the axis ends at 1: uPlot would go up to 100. */
function rangeOf(_: uPlot, min: number, max: number): [number, number] {
  if (min === 0 && max === 0) return [0, 1];
  const [from, to] = uPlot.rangeNum(min, max, 0.1, true);
  return [from ?? min, to ?? max];
}

function Legend({ series }: { readonly series: readonly Series[] }) {
  return (
    <ul className="legend">
      {series.map(({ name }, index) => (
        <li key={name}>
          <svg width="28" height="8" aria-hidden="true">
            <line
              x1="0"
              y1="4"
              x2="28"
              y2="4"
              stroke={`var(--series-${index % 8})`}
              strokeWidth="2"
              strokeDasharray={DASHES[index % DASHES.length]?.join(" ")}
            />
          </svg>
          {name}
        </li>
      ))}
    </ul>
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
              {series.map(({ name, values, low, high }) => (
                <td key={name} className="numeric">
                  {numberText(values[row])}
                  {low !== undefined && high !== undefined && (
                    <span className="soft">
                      {" "}
                      ({numberText(low[row])} to {numberText(high[row])})
                    </span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
