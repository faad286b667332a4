/** A row for each comparison: the paired difference, what it is based on, and what else differs. */
import type { RunComparison } from "../../../contract/comparison.ts";
import { adjustByHolm } from "../../../contract/holm.ts";
import { countText, differenceText, NOTHING, numberText, percentText, scoreText } from "../../components/format.ts";
import { Scroll } from "../../components/scroll.tsx";
import type { ComparedProps } from "./asked.ts";
import { costDifferenceText } from "./cost-difference.ts";
import { RunName } from "./run-name.tsx";

interface SummaryProps extends ComparedProps {
  readonly known: readonly RunComparison[];
  /** Whether no other comparison is still being read: p is corrected for the number of all. */
  readonly isComplete: boolean;
}

export function Summary({ known, asked, runs, isComplete }: SummaryProps) {
  const isSeveral = known.length > 1;
  const adjusted = adjustByHolm(known.map(({ difference }) => (isComplete ? difference.p : null)));
  const isCandidate = asked.role === "candidate";
  return (
    <>
      <Scroll label={isCandidate ? "Differences from each baseline" : "Differences from the baseline"}>
        <table className="differences">
          <thead>
            <tr>
              <th scope="col">{isCandidate ? "Baseline" : "Candidate"}</th>
              <th scope="col">Mean</th>
              <th scope="col">Difference, 95 % interval</th>
              <th scope="col" className="numeric">
                p
              </th>
              {isSeveral && (
                <th scope="col" className="numeric">
                  p by Holm
                </th>
              )}
              <th scope="col">Smallest detectable difference</th>
              <th scope="col">Tasks better, worse, same</th>
              <th scope="col">Cost difference</th>
              <th scope="col">Tasks matched, left out</th>
              <th scope="col">Other differences</th>
            </tr>
          </thead>
          <tbody>
            {known.map((comparison, at) => (
              <SummaryRow
                key={`${comparison.run.id} ${comparison.baseline.id}`}
                comparison={comparison}
                adjusted={isSeveral ? adjusted[at] : undefined}
                isCandidate={isCandidate}
                cost={costOf(comparison, runs)}
              />
            ))}
          </tbody>
        </table>
      </Scroll>
      <Explained known={known} isCorrected={isSeveral && isComplete} />
    </>
  );
}

function costOf({ run, baseline }: RunComparison, runs: ComparedProps["runs"]): string {
  const [ours, theirs] = [run, baseline].map(({ id }) => runs.find((one) => one.id === id));
  return costDifferenceText(ours, theirs);
}

interface SummaryRowProps {
  readonly comparison: RunComparison;
  /** The corrected p value; undefined without other comparisons. */
  readonly adjusted: number | null | undefined;
  readonly isCandidate: boolean;
  readonly cost: string;
}

function SummaryRow({ comparison, adjusted, isCandidate, cost }: SummaryRowProps) {
  const { run, baseline, difference, differs } = comparison;
  const [other, first] = isCandidate ? [baseline, run] : [run, baseline];
  const { ci95, mean } = difference;
  return (
    <tr>
      <th scope="row">
        <RunName id={other.id} /> <code className="soft">…{other.id.slice(-6)}</code>
      </th>
      <td>
        {scoreText(other.mean)}
        <span className="second soft">
          {isCandidate ? "candidate" : "baseline"} {scoreText(first.mean)}
        </span>
      </td>
      <td>
        <strong className={mean < 0 ? "worse" : mean > 0 ? "better" : ""}>{differenceText(mean)}</strong>
        {ci95 !== null && (
          <span className="second">
            {differenceText(ci95[0])} to {differenceText(ci95[1])}
          </span>
        )}
      </td>
      <td className="numeric">{pText(difference.p)}</td>
      {adjusted !== undefined && <td className="numeric">{pText(adjusted)}</td>}
      <td>{detectableText(comparison)}</td>
      <td>
        {countText(comparison.wins)} better, {countText(comparison.losses)} worse, {countText(comparison.ties)} the same
        <span className="second soft">
          {countText(comparison.n_flipped)} flipped
          {comparison.mcnemar_p !== null && `, McNemar p ${numberText(comparison.mcnemar_p)}`}
        </span>
      </td>
      <td>{cost}</td>
      <td>
        {countText(comparison.n_matched)} matched
        {comparison.n_unmatched > 0 && (
          <span className="second soft">
            scored in the candidate only {countText(comparison.n_only_run)}, in the baseline only{" "}
            {countText(comparison.n_only_baseline)}
          </span>
        )}
      </td>
      <td>{differs.join(", ") || "nothing"}</td>
    </tr>
  );
}

function pText(p: number | null): string {
  return p === null ? NOTHING : numberText(p);
}

function detectableText({ detectable, difference }: RunComparison): string {
  if (detectable === undefined || detectable.effect === null) return NOTHING;
  const { effect, more_tasks } = detectable;
  const least = `±${scoreText(effect)}`;
  if (more_tasks === null || more_tasks === 0) return least;
  return `${least}; ${countText(more_tasks)} more tasks would detect ${differenceText(difference.mean)}`;
}

/** What the differences, the smallest detectable one and the corrected p mean. */
function Explained({ known, isCorrected }: Pick<SummaryProps, "known"> & { readonly isCorrected: boolean }) {
  const detectable = known.find((one) => one.detectable?.effect != null)?.detectable;
  return (
    <p className="soft">
      A difference is the candidate's mean minus the baseline's, over the tasks that both have scored.{" "}
      {detectable !== undefined &&
        `The smallest detectable difference is the true difference that a test of these tasks would find with a probability of ${percentText(detectable.power)}, if it wrongly finds a difference in ${percentText(detectable.alpha)} of cases without one. Smaller true differences may be missed. `}
      {isCorrected && "With several comparisons, a small p by chance is more likely: p by Holm is corrected for that."}
    </p>
  );
}
