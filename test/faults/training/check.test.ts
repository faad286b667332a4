/** Each rule of training plans reports its violation; a plan depends only on its seed. */
import { expect, test } from "vitest";
import type { RunView } from "../../../src/contract/run.ts";
import { MANIFEST, TRAINING_RUN } from "../../kernel/http/examples.ts";
import { finishedRun } from "../finished-run.ts";
import { trainingViolations } from "./check.ts";
import { trainingPlanOf } from "./plan.ts";
import type { Taken, TrainingAccount } from "./play.ts";

const { told } = finishedRun([]);
const plan = { ...trainingPlanOf(1), max_steps: 2, lead: 1, max_off_policy_steps: 1 };

function taken(step: number): Taken {
  const [object] = MANIFEST.objects;
  if (object === undefined) throw new Error("the example has no objects");
  const sha256 = String(step).repeat(64);
  const versions = { train_version: step - 1, min_policy_version: step - 1 };
  const named = { step, batch_id: `bat_${step}`, samples: 1, ...versions };
  return {
    manifest: { ...MANIFEST, ...named, objects: [{ ...object, sha256 }] },
    lead: 1,
    credits: [{ sample_id: `s_${step}`, advantage: 0.5 }],
  };
}

function training(steps_trained: number): RunView["training"] {
  const { training: example } = TRAINING_RUN;
  return example && { ...example, steps_trained };
}

const good: TrainingAccount = {
  plan,
  run: { ...told.run, training: training(2) },
  results: told.results,
  audit: told.audit,
  taken: [taken(1), taken(2)],
  lineage: ["bat_1", "bat_2"],
  faults: { crashes: 0, kills: 0, outages: 0, rewinds: 0, dropped: 0 },
  recovery_ms: [],
};

/** The account with a changed second batch. */
function withSecond(change: (second: Taken) => Taken): TrainingAccount {
  return { ...good, taken: [taken(1), change(taken(2))] };
}

/** D1 has not been notified of the run's status. */
function behindIn(audit: TrainingAccount["audit"]): TrainingAccount["audit"] {
  return { ...audit, sources: { ...audit.sources, d1: { ...audit.sources.d1, current: false } } };
}

test("an account of a run without faults breaks no rule", () => {
  expect(trainingViolations(good)).toEqual([]);
});

test.each<[string, TrainingAccount]>([
  ["ended", { ...good, run: { ...good.run, training: training(1) } }],
  ["accounting", { ...good, run: { ...good.run, counts: { ...good.run.counts, scored: 1 } } }],
  ["audit", { ...good, audit: behindIn(good.audit) }],
  ["steps_in_order", { ...good, lineage: ["bat_2", "bat_1"] }],
  ["trained_once", { ...good, lineage: ["bat_1", "bat_2", "bat_2"] }],
  [
    "batch_unchanged",
    {
      ...good,
      taken: [...good.taken, { ...taken(2), manifest: { ...taken(2).manifest, tokens: MANIFEST.tokens + 1 } }],
    },
  ],
  [
    "group_once",
    withSecond((second) => ({
      ...second,
      manifest: { ...second.manifest, objects: taken(1).manifest.objects },
    })),
  ],
  ["credited", withSecond((second) => ({ ...second, credits: [] }))],
  [
    "fresh",
    withSecond((second) => ({
      ...second,
      manifest: { ...second.manifest, train_version: 3, min_policy_version: 1 },
    })),
  ],
  ["lead", withSecond((second) => ({ ...second, lead: 3 }))],
])("the rule %s reports its violation", (rule, account) => {
  expect(trainingViolations(account).map((violation) => violation.rule)).toContain(rule);
});

test("the same seed is the same plan, and plans differ", () => {
  expect(trainingPlanOf(7)).toEqual(trainingPlanOf(7));
  const shapes = Array.from({ length: 20 }, (_, seed) => JSON.stringify(trainingPlanOf(seed)));
  expect(new Set(shapes).size).toBe(20);
});
