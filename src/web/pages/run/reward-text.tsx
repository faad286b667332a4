import type { RunReport } from "../../../contract/report.ts";
import { NOTHING, scoreText } from "../../components/format.ts";

/** A mean with its 95 % interval: Wilson's if there is one, because it stays within the possible rewards. */
export function RewardText({ reward }: { readonly reward: Pick<RunReport["reward"], "mean" | "ci95" | "wilson95"> }) {
  const { mean, ci95, wilson95 } = reward;
  if (mean === null) return NOTHING;
  const interval = wilson95 ?? ci95;
  return (
    <>
      {scoreText(mean)}
      {interval !== null && (
        <span className="soft interval">
          {" "}
          {scoreText(interval[0])} to {scoreText(interval[1])}
        </span>
      )}
    </>
  );
}
