import type { RunView } from "../../../contract/run.ts";
import { countText, NOTHING, scoreText } from "../../components/format.ts";
import { RewardText } from "../run/reward-text.tsx";
import { isWhole } from "./group-rows.ts";

/** The mean score of a run. If it does not stand for the whole run, it is muted, with the number that has a score. */
export function Score({ run }: { readonly run: RunView }) {
  const { report, counts } = run;
  const { mean, n_rollouts } = report.reward;
  if (mean === null) return NOTHING;
  if (isWhole(run)) return <RewardText reward={report.reward} />;
  return (
    <span className="soft">
      {scoreText(mean)}
      <span className="second">
        {countText(n_rollouts)} of {countText(counts.planned)} scored
      </span>
    </span>
  );
}
