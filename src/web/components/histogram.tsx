/** A histogram whose bins can be clicked: each is a button that says its bounds and its count. */
import { countText, numberText } from "./format.ts";

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly n: number;
}

interface HistogramProps {
  readonly title: string;
  readonly bins: readonly Bin[];
  /** What is in no bin: "12 without a score, 3 failed". */
  readonly besides?: string;
  readonly onPick?: (bin: Bin) => void;
}

export function Histogram({ title, bins, besides, onPick }: HistogramProps) {
  const most = Math.max(1, ...bins.map(({ n }) => n));
  return (
    <figure className="histogram">
      <figcaption>{title}</figcaption>
      <ol>
        {bins.map((bin) => {
          const text = `${numberText(bin.from)} to ${numberText(bin.to)}: ${countText(bin.n)}`;
          return (
            <li key={bin.from}>
              <button type="button" title={text} disabled={onPick === undefined} onClick={() => onPick?.(bin)}>
                <span className="visually-hidden">{text}</span>
                <span className="fill" style={{ height: `${(100 * bin.n) / most}%` }} aria-hidden="true" />
              </button>
            </li>
          );
        })}
      </ol>
      <div className="row spread soft" aria-hidden="true">
        <span>{numberText(bins[0]?.from)}</span>
        <span>{numberText(bins.at(-1)?.to)}</span>
      </div>
      {besides !== undefined && <p className="soft">{besides}</p>}
    </figure>
  );
}
