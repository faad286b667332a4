/**
 * The reward of several trainings in one chart, by step, time or tokens, and a row per training: which of them learns
 * fastest. The URL holds the axis, the smoothing and the level of the reward that a run has to reach.
 */
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import type { RunView } from "../../../contract/run.ts";
import { useAddress } from "../../address.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText, differenceText, durationText, NOTHING, numberText, scoreText } from "../../components/format.ts";
import { Loading } from "../../components/loading.tsx";
import { Plot } from "../../components/plot.tsx";
import { Scroll } from "../../components/scroll.tsx";
import { Shown } from "../../components/shown.tsx";
import { SmoothingChoice } from "../run/reward-plot.tsx";
import { smoothingOf } from "../run/reward-series.ts";
import { stepsQuery } from "../run/steps-query.ts";
import {
  AXES,
  type Axis,
  type Curve,
  curveOf,
  hasAxis,
  type Learning,
  learningOf,
  type Measured,
  overlayOf,
  type UsualLevel,
  usualLevel,
} from "./learning.ts";
import { RunName } from "./run-name.tsx";

const AXIS_NAMES: Readonly<Record<Axis, string>> = { step: "step", time: "time", tokens: "tokens trained on" };

export function LearningCurves({ runs }: { readonly runs: readonly RunView[] }) {
  const queries = useQueries({ queries: runs.map(stepsQuery) });
  const measured = runs.flatMap(({ id, created_at }, index): Measured[] => {
    const steps = queries[index]?.data;
    return steps === undefined ? [] : [{ id, created_at, steps }];
  });
  return (
    <section aria-label="Learning curves">
      {queries.map(({ error, refetch }, index) => {
        return error === null ? null : <ErrorNote key={runs[index]?.id} error={error} onRetry={() => refetch()} />;
      })}
      {queries.some(({ isPending }) => isPending) && <Loading what="the steps of the trainings" />}
      {measured.length === runs.length && <Curves runs={runs} measured={measured} />}
    </section>
  );
}

interface CurvesProps {
  readonly runs: readonly RunView[];
  readonly measured: readonly Measured[];
}

function Curves({ runs, measured }: CurvesProps) {
  const [search, change] = useAddress();
  const axes = AXES.filter((one) => hasAxis(one, measured));
  const axis = axes.find((one) => one === search["by"]) ?? "step";
  const smoothing = smoothingOf(search["smooth"]);
  const curves = measured.map((run) => curveOf(run, axis, Number(smoothing)));
  const usual = usualLevel(curves);
  const chosen = levelIn(search["level"]);
  const scale = scaleOf(axis, curves);
  if (usual === null) return <p>No step of these trainings has a reward yet.</p>;
  const level = chosen ?? usual.level;
  const learned = learningOf(curves, level);
  return (
    <>
      <Fastest learned={learned} level={level} axis={axis} runs={runs} />
      <LevelText usual={usual} chosen={chosen} isSmoothed={smoothing !== "0"} />
      <CurvePlot curves={curves} runs={runs} scale={scale} isSmoothed={smoothing !== "0"} />
      <div className="row">
        <label className="row">
          Draw by
          <select value={axis} onChange={({ target }) => change({ by: target.value })}>
            {axes.map((one) => (
              <option key={one} value={one}>
                {AXIS_NAMES[one]}
              </option>
            ))}
          </select>
        </label>
        <SmoothingChoice value={smoothing} onChange={(smooth) => change({ smooth })} />
        <label className="row">
          Reward to reach
          <input
            type="number"
            step="any"
            value={search["level"] ?? String(level)}
            onChange={({ target }) => change({ level: target.value || undefined })}
          />
        </label>
      </div>
      <LearningTable learned={learned} level={level} axis={axis} isSmoothed={smoothing !== "0"} />
    </>
  );
}

function levelIn(text: string | undefined): number | null {
  const value = text === undefined || text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

interface CurvePlotProps {
  readonly curves: readonly Curve[];
  readonly runs: readonly RunView[];
  readonly scale: Scale;
  readonly isSmoothed: boolean;
}

function CurvePlot({ curves, runs, scale, isSmoothed }: CurvePlotProps) {
  const overlay = useMemo(() => overlayOf(curves), [curves]);
  const at = useMemo(() => overlay.at.map((place) => place / scale.unit), [overlay, scale.unit]);
  const series = curves.map(({ id }, index) => ({ name: nameOf(runs, id), values: overlay.values[index] ?? [] }));
  return (
    <Plot
      title={isSmoothed ? "Mean reward, smoothed" : "Mean reward"}
      x={scale.name}
      at={at}
      height={300}
      series={series}
    />
  );
}

/** With the end of the id if another run has the same name. */
function nameOf(runs: readonly RunView[], id: string): string {
  const name = runs.find((run) => run.id === id)?.name ?? null;
  if (name === null) return id;
  return runs.filter((run) => run.name === name).length > 1 ? `${name} …${id.slice(-6)}` : name;
}

interface Scale {
  readonly name: string;
  /** How much one unit of the axis is. */
  readonly unit: number;
}

function scaleOf(axis: Axis, curves: readonly Curve[]): Scale {
  const most = curves.reduce((end, { at }) => Math.max(end, at.at(-1) ?? 0), 0);
  if (axis === "step") return { name: "step", unit: 1 };
  if (axis === "time") {
    if (most < 300) return { name: "seconds since the run began", unit: 1 };
    return most < 4 * 3600
      ? { name: "minutes since the run began", unit: 60 }
      : { name: "hours since the run began", unit: 3600 };
  }
  if (most < 100_000) return { name: "tokens trained on", unit: 1 };
  return most < 10_000_000
    ? { name: "thousands of tokens trained on", unit: 1000 }
    : { name: "millions of tokens trained on", unit: 1_000_000 };
}

/** `41 steps`, `12 min 3 s`, `1,200,000 tokens`. */
function distanceText(axis: Axis, value: number): string {
  if (axis === "time") return durationText(value);
  if (axis === "tokens") return `${countText(value)} tokens`;
  return value === 1 ? "1 step" : `${countText(value)} steps`;
}

interface FastestProps {
  readonly learned: readonly Learning[];
  readonly level: number;
  readonly axis: Axis;
  readonly runs: readonly RunView[];
}

function Fastest({ learned, level, axis, runs }: FastestProps) {
  const [first, second] = learned;
  if (first === undefined || first.reached === null) {
    return <p role="status">None of these trainings has reached a reward of {numberText(level)}.</p>;
  }
  const name = (id: string) => <Shown text={nameOf(runs, id)} />;
  if (second?.reached === first.reached) {
    return (
      <p role="status">
        <b>{name(first.id)}</b> and <b>{name(second.id)}</b> learn equally fast: both reach a reward of{" "}
        {numberText(level)} after {distanceText(axis, first.reached)}.
      </p>
    );
  }
  return (
    <p role="status">
      <b>{name(first.id)}</b> learns fastest: it reaches a reward of {numberText(level)} after{" "}
      {distanceText(axis, first.reached)}.{" "}
      {second !== undefined &&
        (second.reached === null ? (
          "No other training has reached it."
        ) : (
          <>
            The next is {name(second.id)}, after {distanceText(axis, second.reached)}.
          </>
        ))}
    </p>
  );
}

interface LevelTextProps {
  readonly usual: UsualLevel;
  /** The reward that the reader chose; null for the usual one. */
  readonly chosen: number | null;
  readonly isSmoothed: boolean;
}

/** How "fastest" is computed. */
function LevelText({ usual, chosen, isSmoothed }: LevelTextProps) {
  const line = isSmoothed ? "smoothed line" : "line";
  return (
    <p className="soft">
      The training whose {line} reaches this reward first learns fastest.{" "}
      {chosen === null ? (
        <>
          {numberText(usual.level)} is halfway between {scoreText(usual.lowest)}, the lowest reward with which a line
          begins, and {scoreText(usual.highest)}, the highest reward of a line.
        </>
      ) : (
        `You chose ${numberText(chosen)}.`
      )}{" "}
      Change it in “Reward to reach”.
    </p>
  );
}

interface LearningTableProps extends Omit<FastestProps, "runs"> {
  readonly isSmoothed: boolean;
}

function LearningTable({ learned, level, axis, isSmoothed }: LearningTableProps) {
  return (
    <Scroll label="Trainings">
      <table>
        <thead>
          <tr>
            <th scope="col">Training</th>
            {[`Reaches ${numberText(level)} after`, "Reward at the end", "Best reward", "Slope per 10 steps"].map(
              (name) => (
                <th key={name} scope="col" className="numeric">
                  {name}
                </th>
              ),
            )}
            <th scope="col" className="numeric">
              Steps
            </th>
          </tr>
        </thead>
        <tbody>
          {learned.map(({ id, reached, end, best, best_at, slope, steps }) => (
            <tr key={id}>
              <th scope="row">
                <RunName id={id} /> <code className="soft">…{id.slice(-6)}</code>
              </th>
              <td className="numeric">{reached === null ? "not reached" : distanceText(axis, reached)}</td>
              <td className="numeric">{scoreText(end)}</td>
              <td className="numeric">
                {scoreText(best)}
                {best_at !== null && (
                  <span className="soft">
                    {" "}
                    {axis === "step" ? `at step ${countText(best_at)}` : `after ${distanceText(axis, best_at)}`}
                  </span>
                )}
              </td>
              <td className="numeric">{slope === null ? NOTHING : differenceText(slope * 10)}</td>
              <td className="numeric">{countText(steps)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="soft">
        Rewards are means of the rollouts that arrived in a step{isSmoothed && ", smoothed as the lines above"}. The
        slope is that of the straight line that fits the {isSmoothed && "smoothed "}rewards of all measured steps best,
        by least squares.
      </p>
    </Scroll>
  );
}
