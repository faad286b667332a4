/** An eval before or after a training. */
import type { EvalRequestInput } from "../../contract/eval-request.ts";
import type { RunView } from "../../contract/run.ts";
import { CommandError, EXIT } from "../exit.ts";
import { followRun } from "../follow.ts";
import { Display } from "../terminal/display.ts";
import { countText, estimateText, meanIntervalText } from "../terminal/format.ts";
import type { Stage } from "./stage.ts";

type When = "before" | "after";

/** The ended run, whose line stands on the terminal. Throws when it did not complete. */
export async function evaluated(
  when: When,
  request: EvalRequestInput,
  metadata: Readonly<Record<string, string>>,
  { connection, term, signal }: Stage,
): Promise<RunView> {
  const { client } = connection;
  term.say(`Evaluating ${when} training: ${countText(request.num_examples ?? 0)} tasks of ${request.environment}`);
  const display = new Display(term, () => performance.now());
  const started = await client.createRun(
    { ...request, name: `${when} training`, metadata: { ...request.metadata, ...metadata } },
    { signal },
  );
  const run = await followRun(client, started.id, {
    signal,
    onProgress: (it) => display.show(it),
  });
  if (run.status === "completed") return run;
  throw new CommandError(EXIT.bad, {
    code: "eval_failed",
    message: `the eval ${when} training, ${run.id}, is ${run.status}: ${run.error?.message ?? "cancelled"}`,
    type: "run_error",
  });
}

/** "before 0.305 ± 0.021 (95 %: 0.264 to 0.346), 256 tasks". */
export function estimateLine(when: When, { report: { reward } }: RunView): string {
  const { ci95 } = reward;
  const range = ci95 === null ? "" : ` (95 %: ${meanIntervalText(ci95, reward.range)})`;
  return `${when.padEnd(6)} ${estimateText(reward)}${range}, ${reward.n_tasks} tasks`;
}
