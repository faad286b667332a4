/** A small line of values, the oldest first, with a dot at the last. The text says the same. */
import "./sparkline.css";

interface SparklineProps {
  readonly values: readonly number[];
  /** "6 runs, 0.310 to 0.500". */
  readonly text: string;
}

const WIDTH = 120;
const HEIGHT = 28;
/** The distance of the line from the edges: half of the dot. */
const EDGE = 4;

export function Sparkline({ values, text }: SparklineProps) {
  const low = Math.min(...values);
  const span = Math.max(...values) - low;
  const x = (at: number) => EDGE + (values.length < 2 ? 1 : at / (values.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (value: number) => EDGE + (span === 0 ? 0.5 : 1 - (value - low) / span) * (HEIGHT - 2 * EDGE);
  const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  const [lastX, lastY] = points.at(-1)?.split(",") ?? [];
  return (
    <svg className="sparkline" width={WIDTH} height={HEIGHT} role="img" aria-label={text}>
      <title>{text}</title>
      <polyline points={points.join(" ")} />
      <circle cx={lastX} cy={lastY} r="3" />
    </svg>
  );
}
