/**
 * Draws a reward curve in characters: each step's mean as a dot, the smoothed curve as a line over them, and a level to
 * compare with as dashes.
 *
 * Invariants: no line is wider than requested. Shapes carry the same information as colours. Steps keep their positions
 * while the curve grows: the whole training is as wide as the plot from the start.
 */
import { painter, type Style } from "./terminal.ts";

export interface RewardPoint {
  /** From 1. */
  readonly step: number;
  readonly reward: number;
}

export interface Plot {
  readonly points: readonly RewardPoint[];
  /** The step at the right edge. */
  readonly lastStep: number;
  /** The level of the dashes; null for none. */
  readonly level: number | null;
  /** The best possible reward, which the axis reaches; absent if it is not known. */
  readonly best?: number;
}

export interface PlotSize {
  readonly columns: number;
  /** Rows of the plot, including its axis. */
  readonly rows: number;
  readonly colour: boolean;
}

/** The weight of the old value at each step: a curve of forty steps keeps its shape and loses its noise. */
const SMOOTHING = 0.7;
/** A number, a space, the axis. */
const LABEL_WIDTH = 6;
const AXIS_ROWS = 2;
const [DOTS_ACROSS, DOTS_DOWN] = [2, 4];
const BLANK_BRAILLE = 0x2800;
/** The bit of each dot of a braille cell, by row, then column. */
const BRAILLE_BITS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;

/** Empty if a curve does not fit. */
export function rewardPlot(plot: Plot, { columns, rows, colour }: PlotSize): string[] {
  const [width, height] = [columns - LABEL_WIDTH, rows - AXIS_ROWS];
  if (width < 8 || height < 3) return [];
  const scale = scaleOf(plot);
  const grid: Grid = { width, height, scale, lastStep: Math.max(2, plot.lastStep) };
  const line = lineCells(smoothed(plot.points), grid);
  const dots = new Set(plot.points.map((point) => cellOf(point, grid)));
  const level = plot.level === null ? -1 : rowOf(plot.level, grid);
  const labels = labelsOf(grid);
  const drawn = Array.from({ length: height }, (_, row) => {
    const cells = Array.from({ length: width }, (_, column): Cell => {
      const at = row * width + column;
      const bits = line.get(at);
      if (bits !== undefined) return ["green", String.fromCharCode(BLANK_BRAILLE | bits)];
      if (dots.has(at)) return ["cyan", "·"];
      return row === level ? ["grey", "┄"] : [null, " "];
    });
    const label = labels.get(row);
    const axis = label === undefined ? "│" : "┤";
    return `${(label ?? "").padStart(LABEL_WIDTH - 2)} ${axis}${paintCells(cells, colour)}`;
  });
  return [...drawn, ...stepAxis(grid)];
}

type Cell = readonly [style: Style | null, character: string];

/** Without trailing spaces; adjacent cells of one style are painted together. */
function paintCells(cells: readonly Cell[], colour: boolean): string {
  const paint = painter(colour);
  const runs: [style: Style | null, text: string][] = [];
  for (const [style, character] of cells.slice(0, 1 + cells.findLastIndex(([it]) => it !== null))) {
    const last = runs.at(-1);
    if (last !== undefined && last[0] === style) last[1] += character;
    else runs.push([style, character]);
  }
  return runs.map(([style, text]) => (style === null ? text : paint(style, text))).join("");
}

/** The running mean with decaying weights, unbiased from the first step on. */
export function smoothed(points: readonly RewardPoint[]): RewardPoint[] {
  let [total, weight] = [0, 0];
  return points.map(({ step, reward }) => {
    total = total * SMOOTHING + reward;
    weight = weight * SMOOTHING + 1;
    return { step, reward: total / weight };
  });
}

interface Scale {
  readonly low: number;
  readonly high: number;
}

interface Grid {
  readonly width: number;
  readonly height: number;
  readonly scale: Scale;
  readonly lastStep: number;
}

/** From 0 to the best possible reward, or to 1, the usual one; a wider range if necessary. */
function scaleOf({ points, level, best }: Plot): Scale {
  const values = [...points.map(({ reward }) => reward), ...(level === null ? [] : [level])];
  return { low: Math.min(0, ...values), high: Math.max(best ?? 1, ...values) };
}

/** The position from the left and from the top, each in 0 to 1. */
function placeOf({ step, reward }: RewardPoint, { scale, lastStep }: Grid): [number, number] {
  const across = Math.min(1, (step - 1) / (lastStep - 1));
  return [across, (scale.high - reward) / (scale.high - scale.low)];
}

function cellOf(point: RewardPoint, grid: Grid): number {
  const [across] = placeOf(point, grid);
  return rowOf(point.reward, grid) * grid.width + Math.round(across * (grid.width - 1));
}

function rowOf(reward: number, grid: Grid): number {
  const [, down] = placeOf({ step: 1, reward }, grid);
  return Math.min(grid.height - 1, Math.floor(down * grid.height));
}

/** The braille bits, by cell, of the line through the points. */
function lineCells(points: readonly RewardPoint[], grid: Grid): Map<number, number> {
  const cells = new Map<number, number>();
  const [wide, high] = [grid.width * DOTS_ACROSS - 1, grid.height * DOTS_DOWN - 1];
  const dots = points.map((point) => {
    const [across, down] = placeOf(point, grid);
    return [Math.round(across * wide), Math.round(down * high)] as const;
  });
  for (const [at, to] of dots.entries()) {
    for (const [x, y] of dotsBetween(dots[at - 1] ?? to, to)) {
      const cell = Math.floor(y / DOTS_DOWN) * grid.width + Math.floor(x / DOTS_ACROSS);
      const bit = BRAILLE_BITS[y % DOTS_DOWN]?.[x % DOTS_ACROSS] ?? 0;
      cells.set(cell, (cells.get(cell) ?? 0) | bit);
    }
  }
  return cells;
}

type Dot = readonly [x: number, y: number];

function dotsBetween([x0, y0]: Dot, [x1, y1]: Dot): Dot[] {
  const steps = Math.max(1, Math.abs(x1 - x0), Math.abs(y1 - y0));
  return Array.from({ length: steps + 1 }, (_, at): Dot => {
    const share = at / steps;
    return [Math.round(x0 + (x1 - x0) * share), Math.round(y0 + (y1 - y0) * share)];
  });
}

/** Round numbers by their row; fewer if there are few rows. */
function labelsOf(grid: Grid): Map<number, string> {
  const { low, high } = grid.scale;
  const step = roundStep((high - low) / Math.min(4, grid.height - 1));
  const labels = new Map<number, string>();
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) {
    const text = Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
    const row = rowOf(value, grid);
    if (!labels.has(row)) labels.set(row, text.slice(0, LABEL_WIDTH - 2));
  }
  return labels;
}

/** The nearest of 1, 2, 2.5 and 5 times a power of ten. */
function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  const candidates = [1, 2, 2.5, 5, 10].map((factor) => factor * power);
  const distance = (step: number) => Math.abs(Math.log(step / wanted));
  return candidates.reduce((best, step) => (distance(step) < distance(best) ? step : best));
}

function stepAxis({ width, lastStep }: Grid): string[] {
  const margin = " ".repeat(LABEL_WIDTH - 1);
  const [first, last] = ["1", String(lastStep)];
  const gap = " ".repeat(Math.max(1, width - first.length - last.length));
  return [`${margin}└${"─".repeat(width)}`, `${margin} ${first}${gap}${last}`];
}
