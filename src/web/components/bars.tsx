/**
 * A bar for each point of a series, such as the cost of each day. A bar has its text for a mouse and for a screen
 * reader; a bar that can be chosen is a button. Every few bars have a label on the axis.
 */
import "./bars.css";

export interface BarPoint {
  readonly key: string;
  /** Below the axis: "30 Nov". */
  readonly label: string;
  /** "30 Nov: $0.42". */
  readonly text: string;
  readonly value: number;
  readonly isChosen?: boolean;
}

interface BarsProps {
  readonly title: string;
  readonly points: readonly BarPoint[];
  /** The text of a value on the axis. */
  readonly valueText: (value: number) => string;
  readonly onPick?: (point: BarPoint) => void;
}

/** The most labels of the axis: more would overlap on a narrow screen. */
const LABELS = 7;

export function Bars({ title, points, valueText, onPick }: BarsProps) {
  const most = Math.max(0, ...points.map(({ value }) => value));
  const every = Math.ceil(points.length / LABELS);
  const isLabelled = (at: number) => (points.length - 1 - at) % every === 0;
  return (
    <figure className="bars">
      <figcaption>{title}</figcaption>
      <div className="plane">
        <div className="scale soft numeric" aria-hidden="true">
          <span>{valueText(most)}</span>
          <span>{valueText(0)}</span>
        </div>
        <ol>
          {points.map((point) => (
            <li key={point.key} title={point.text}>
              <Bar point={point} share={most === 0 ? 0 : Math.max(0, point.value) / most} onPick={onPick} />
            </li>
          ))}
        </ol>
        <ol className="soft labels" aria-hidden="true">
          {points.map(({ key, label }, at) => (
            <li key={key} className={(points.length - 1 - at) % (2 * every) === 0 ? "" : "minor"}>
              {isLabelled(at) && <span>{label}</span>}
            </li>
          ))}
        </ol>
      </div>
    </figure>
  );
}

interface BarProps {
  readonly point: BarPoint;
  readonly share: number;
  readonly onPick: BarsProps["onPick"];
}

function Bar({ point, share, onPick }: BarProps) {
  const { text, isChosen = false } = point;
  const fill = <span className={isChosen ? "fill chosen" : "fill"} style={{ height: `${share * 100}%` }} />;
  if (onPick === undefined) {
    return (
      <span className="bar">
        <span className="visually-hidden">{text}</span>
        {fill}
      </span>
    );
  }
  return (
    <button type="button" className="bar" aria-pressed={isChosen} aria-label={text} onClick={() => onPick(point)}>
      {fill}
    </button>
  );
}
