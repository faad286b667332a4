/** `npm run faults -- --training`: plans of training runs, one after another. */
import { EXIT, type ExitCode } from "../../../src/cli/exit.ts";
import { printJson } from "../../../src/cli/terminal/terminal.ts";
import { trainingLine, trainingViolations, type Violation } from "./check.ts";
import { trainingPlanOf } from "./plan.ts";
import { playTraining } from "./play.ts";

interface TrainingReport {
  readonly seed: number;
  readonly ok: boolean;
  readonly steps: number;
  readonly rollouts: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly recovery_ms: readonly number[];
  readonly violations: readonly Violation[];
}

export async function playTrainingPlans(
  seeds: readonly number[],
  stage: { readonly port: number; readonly endsWithinMs: number },
  json: boolean,
): Promise<ExitCode> {
  const plans: TrainingReport[] = [];
  for (const seed of seeds) {
    const account = await playTraining(trainingPlanOf(seed), stage);
    const violations = trainingViolations(account);
    const { lineage, results, faults, recovery_ms } = account;
    plans.push({
      ...{ seed, ok: violations.length === 0, steps: lineage.length, rollouts: results.length },
      ...{ faults, recovery_ms, violations },
    });
    const line = trainingLine(account, violations);
    (json ? process.stderr : process.stdout).write(`${line}\n`);
  }
  const failed = plans.filter(({ ok }) => !ok).length;
  if (json) printJson({ plans, failed });
  return failed === 0 ? EXIT.good : EXIT.bad;
}
