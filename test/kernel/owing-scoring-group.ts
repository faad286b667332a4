/** A scoring group of a run by hand that needs a judgement. Its messages are lost, so a test decides who claims it. */
import type { RunMoney } from "../../src/contract/run-spec.ts";
import type { RolloutReport } from "../../src/kernel/messages/wire.ts";
import { topics } from "./essays.ts";
import { acceptedOnly, createLossy, type LossyRun, segmentLines } from "./hand-made.ts";
import { requestsOf, rolloutAt, type TestApi } from "./platform.ts";
import { script } from "./script.ts";

/** Its judge uses the endpoint `bench`. */
export function essayRun(judge: string, count: number, more: object = {}) {
  const judges = { default: { endpoint: "bench", model: judge } };
  return {
    environment: "essays",
    dataset: topics(count),
    model: script(["An essay."]),
    judges,
    ...more,
  };
}

/**
 * A run whose one rollout has answered and needs a judgement, and whose messages are lost. `judge` answers for the
 * template run, and `later` for the scoring group itself. `money`: the run has a cap, of which the group's judge may
 * use `bound_micros`.
 */
export async function owing(
  platform: TestApi,
  judge: string,
  later = judge,
  { money, bound_micros }: { readonly money?: RunMoney; readonly bound_micros?: number } = {},
) {
  const template = await platform.finish(essayRun(judge, 1, { judge_cache: false }));
  const asked = (await requestsOf(later)).length;
  const row = askedOf(await acceptedOnly(platform, template.id, money && { money }), later);
  const { within, judgements } = await createLossy(platform, row);
  const trajectory = (await segmentLines(platform, template.id))[0]?.trajectory;
  if (!trajectory) throw new Error("the template has no trajectory");
  const rollout_id = rolloutAt(row.id);
  const text = JSON.stringify({ ...trajectory, rollout_id });
  const { example_id, task_key, usage, stop_condition, started_at, ended_at } = trajectory;
  const report: RolloutReport = {
    ...{ group: 0, slot: 0, attempt: 0, rollout_id, example_id, task_key },
    ...{ failure: null, cancelled: null, error: null, stop_run: null },
    ...{
      digest: "digest",
      bytes: text.length,
      trajectory: text,
      stop_condition,
      is_truncated: false,
    },
    ...{ turns: 1, calls: 1, usage, started_at, ended_at },
  };
  const endpoint_id = row.spec.judges?.["default"]?.endpoint_id ?? "";
  await within(async (run) => {
    run.answered([report]);
    run.requestJudgements([{ unit: 1, endpoint_id, calls: 1, ...(bound_micros && { bound_micros }) }]);
    await run.alarm();
  });
  return { id: row.id, within, judgements, asked };
}

/** The same run with another model as its judge. */
function askedOf(row: Awaited<ReturnType<typeof acceptedOnly>>, model: string): typeof row {
  const { default: judge } = row.spec.judges ?? {};
  if (judge === undefined) throw new Error("the template has no judge");
  return { ...row, spec: { ...row.spec, judges: { default: { ...judge, model } } } };
}

/** Two claims of the scoring group: the later one is valid, and the holder of the first one still calls the judge. */
export async function takenTwice(platform: TestApi, id: string, within: LossyRun["within"]) {
  const first = await within((run) => run.takeJudging(1, { id: "first", attempt: 1 }));
  // No report came in time, so it is sent again, and another consumer claims it.
  await platform.inRun(id, (_, { storage }) => storage.sql.exec("update judging set ask_at = 0"));
  await within((run) => run.alarm());
  const second = await within((run) => run.takeJudging(1, { id: "second", attempt: 1 }));
  if (first === null || second === null) throw new Error("the unit was not to be taken");
  return [first, second] as const;
}
