/** How rewards are spread. A mean of 0.5 may be all halves, or half of nothing and half of everything. */
import { countText } from "./format.ts";
import { padTo } from "./text-width.ts";

/** Rewards by value, and how often each was seen. Rewards are mostly few values. */
export class RewardTally {
  readonly counts = new Map<number, number>();
  /** Bounds memory where every reward is another number. */
  readonly #most: number;

  constructor(most = 10_000) {
    this.#most = most;
  }

  add(reward: number | null): void {
    if (reward === null) return;
    const seen = this.counts.get(reward);
    if (seen === undefined && this.counts.size >= this.#most) return;
    this.counts.set(reward, (seen ?? 0) + 1);
  }

  clear(): void {
    this.counts.clear();
  }

  get total(): number {
    return [...this.counts.values()].reduce((total, count) => total + count, 0);
  }
}

interface Bin {
  readonly label: string;
  readonly count: number;
}

const BINS = 10;
const WIDEST_BAR = 40;

/**
 * A line for each value where there are few, else for each tenth of their range; "" when there is none. `scored` is how
 * many rewards there are in all, `of` ends the title.
 */
export function histogram(
  tally: RewardTally,
  { scored, of, width }: { scored: number; of: string; width: number },
): string {
  if (tally.total === 0) return "";
  const values = [...tally.counts].sort(([a], [b]) => a - b);
  const bins = values.length <= BINS ? eachValue(values) : tenths(values);
  const labelWidth = Math.max(...bins.map(({ label }) => label.length));
  const countWidth = Math.max(...bins.map(({ count }) => countText(count).length));
  const most = Math.max(...bins.map(({ count }) => count));
  const room = Math.max(1, Math.min(WIDEST_BAR, width - labelWidth - countWidth - 5));
  const lines = bins.map(({ label, count }) => {
    const cells = count === 0 ? 0 : Math.max(1, Math.round((count / most) * room));
    const bar = padTo("█".repeat(cells), room);
    return `  ${label.padStart(labelWidth)} ${bar} ${countText(count).padStart(countWidth)}`;
  });
  const seen = tally.total < scored ? `${countText(tally.total)} of ` : "";
  return [`Rewards of ${seen}${countText(scored)} scored ${scored === 1 ? "rollout" : "rollouts"}${of}`, ...lines].join(
    "\n",
  );
}

function eachValue(values: readonly (readonly [number, number])[]): Bin[] {
  return values.map(([value, count]) => ({ label: value.toFixed(3), count }));
}

function tenths(values: readonly (readonly [number, number])[]): Bin[] {
  const low = values[0]?.[0] ?? 0;
  const high = values.at(-1)?.[0] ?? 1;
  const step = (high - low) / BINS;
  return Array.from({ length: BINS }, (_, at) => {
    const [from, to] = [low + at * step, at === BINS - 1 ? high : low + (at + 1) * step];
    const inside = values.filter(([value]) => {
      return value >= from && (value < to || (at === BINS - 1 && value <= high));
    });
    return {
      label: `${from.toFixed(3)} to ${to.toFixed(3)}`,
      count: inside.reduce((total, [, count]) => total + count, 0),
    };
  });
}
