/**
 * A histogram with clickable bins: each is a button that names its bounds and its count. A bin of whole numbers names
 * its numbers. If there are few bins, each has its label and count next to it; otherwise only the ends of the axis have
 * labels.
 */
import { countText, numberText } from "./format.ts";
import "./charts.css";

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly n: number;
}

interface HistogramProps {
  readonly title: string;
  readonly bins: readonly Bin[];
  /** All values are whole numbers: a bin does not include its `to`. */
  readonly whole: boolean;
  /** What no bin contains: "12 without a score, 3 failed". */
  readonly besides?: string;
  readonly onPick?: (bin: Bin) => void;
}

/** Up to this many bins have a label each. */
const LABELLED = 8;

export function binText({ from, to }: Pick<Bin, "from" | "to">, whole: boolean): string {
  const last = whole ? to - 1 : to;
  return last <= from ? numberText(from) : `${numberText(from)} to ${numberText(last)}`;
}

export function Histogram({ title, bins, whole, besides, onPick }: HistogramProps) {
  const most = Math.max(1, ...bins.map(({ n }) => n));
  const labelled = bins.length <= LABELLED;
  const end = bins.at(-1)?.to;
  return (
    <figure className="histogram">
      <figcaption>
        Rollouts by {title}
        {!labelled && <span className="soft"> (the highest bar: {countText(most)})</span>}
      </figcaption>
      <ol>
        {bins.map((bin) => {
          const text = `${binText(bin, whole)}: ${countText(bin.n)}`;
          return (
            <li key={bin.from}>
              <button type="button" title={text} disabled={onPick === undefined} onClick={() => onPick?.(bin)}>
                <span className="visually-hidden">{text}</span>
                {labelled && <span aria-hidden="true">{countText(bin.n)}</span>}
                <span
                  className="fill"
                  style={{ height: `calc(${bin.n / most} * (100% - 1.6em))` }}
                  aria-hidden="true"
                />
              </button>
            </li>
          );
        })}
      </ol>
      <div className={labelled ? "axis labelled soft" : "axis soft"} aria-hidden="true">
        {labelled ? (
          bins.map((bin) => <span key={bin.from}>{binText(bin, whole)}</span>)
        ) : (
          <>
            <span>{numberText(bins[0]?.from)}</span>
            <span>{numberText(whole && end !== undefined ? end - 1 : end)}</span>
          </>
        )}
      </div>
      {besides !== undefined && <p className="soft">{besides}</p>}
    </figure>
  );
}
