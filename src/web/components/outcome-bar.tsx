/** The outcomes of a run's rollouts, as one bar and in words. With `to`, each part links to its rollouts. */
import type { RunCounts } from "../../contract/run.ts";
import { countText, sum } from "./format.ts";

const PARTS = ["scored", "unscored", "failed", "cancelled", "in flight", "pending"] as const;

export function partsOf(counts: RunCounts): Readonly<Record<(typeof PARTS)[number], number>> {
  return {
    scored: counts.scored,
    unscored: sum(counts.unscored),
    failed: sum(counts.failed),
    cancelled: sum(counts.cancelled),
    "in flight": counts.in_flight,
    pending: counts.pending,
  };
}

interface OutcomeBarProps {
  readonly counts: RunCounts;
  /** The words are also shown below the bar. */
  readonly legend?: boolean;
}

export function OutcomeBar({ counts, legend = false }: OutcomeBarProps) {
  const parts = partsOf(counts);
  const there = PARTS.filter((name) => parts[name] > 0);
  const text = there.map((name) => `${countText(parts[name])} ${name}`).join(", ");
  return (
    <div className="outcomes" title={text}>
      <div className="bar" aria-hidden="true">
        {there.map((name) => (
          <span key={name} className={name.replace(" ", "-")} style={{ flexGrow: parts[name] }} />
        ))}
      </div>
      <span className={legend ? "soft" : "visually-hidden"}>{text === "" ? "no rollouts yet" : text}</span>
    </div>
  );
}
