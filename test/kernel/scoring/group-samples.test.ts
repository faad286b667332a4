import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import * as z from "zod";
import type { StoredTurn, Trajectory } from "../../../src/contract/trajectory.ts";
import { dataset, SingleTurnEnv } from "../../../src/core/entry.ts";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import { packTokens } from "../../../src/core/rollout/tokens.ts";
import { decodeRows } from "../../../src/core/training/sample-row.ts";
import { sampleKey } from "../../../src/kernel/kit/names.ts";
import { Subrequests } from "../../../src/kernel/kit/subrequests.ts";
import type { RunSpec, ScoredMember } from "../../../src/kernel/messages/wire.ts";
import { samplesOfGroup } from "../../../src/kernel/scoring/group-samples.ts";
import { finishedTrajectory } from "../../fixtures/finished-trajectory.ts";
import { RUN_SPEC } from "../run-rows.ts";
import { TRAINING } from "../training-rows.ts";

const environment = codeOf(
  new SingleTurnEnv({
    dataset: dataset(z.object({ question: z.string() }), [{ question: "?" }]),
    sampling: { temperature: 0.5 },
    rubric: { rewards: { one: () => 1 } },
  }),
);
const training = { ...TRAINING, trainer: { ...TRAINING.trainer, encoding: "jsonl" as const } };
const SPEC: RunSpec = { ...RUN_SPEC, run_id: `run_${crypto.randomUUID()}`, training };

/** One turn, sampled by the weights of version 3 for a group that was dispatched with version 2. */
function turn(logprobs: readonly number[] | null): StoredTurn {
  const ids = { prompt_ids: [10, 11], completion_ids: [20, 21], completion_logprobs: logprobs };
  const message = { role: "assistant", content: "x" } as const;
  const said = { id: null, model: null, message, finish_reason: "stop", usage: null } as const;
  const response = { ...said, ...ids, policy_version: "3", latency_ms: 1 };
  return {
    ...{ index: 0, prompt: { keep: 0, append: [] }, completion: message, finish_reason: "stop" },
    ...{ usage: null, tokens: packTokens([], response), is_truncated: false, calls: 1 },
    ...{ latency_ms: 1, response_id: null, model: null, policy_version: "3", dispatch_version: 2 },
    ...{ answered_at: 1, state_after: null },
  };
}

type Given = readonly [reward: number | null, ...turns: StoredTurn[]];

async function group(given: readonly Given[], newest_version?: number, spec = SPEC) {
  const trajectories = given.map(
    ([, ...turns], slot): Trajectory => finishedTrajectory({ rollout_id: `ro_run_7_${slot}_0_mac`, turns }),
  );
  const members = given.map(([reward], slot): ScoredMember => {
    const rollout_id = `ro_run_7_${slot}_0_mac`;
    const record = { rollout_id, reward, scores: [], scoring_errors: [], unscored: null };
    return { group: 7, slot, attempt: 0, record };
  });
  const scored = { members, trajectories, newest_version };
  return (await samplesOfGroup(env, spec, environment, scored, new Subrequests())).samples;
}

async function unzipped(sha256: string): Promise<Uint8Array<ArrayBuffer>> {
  const object = await env.STORE.get(sampleKey(SPEC.scope, SPEC.run_id, sha256));
  const plain = object?.body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

const GOOD = turn([-0.5, -0.25]);

test("a group that is trained on is one object of rows, named after its bytes; a repeat gives the same object", async () => {
  const made = await group([
    [1, GOOD],
    [0, GOOD],
  ]);
  const { object, samples } = made ?? {};
  expect(samples?.[1]).toEqual({
    ...{ sample_id: "ro_run_7_1_0_mac.0", rollout_id: "ro_run_7_1_0_mac" },
    ...{ tokens: 4, trainable_tokens: 2, policy_version_start: 2, policy_version_end: 3 },
  });
  const [row] = decodeRows(await unzipped(object?.sha256 ?? ""), "jsonl");
  expect(row).toMatchObject({
    ...{ group_id: "grp_run_7", env: "e@1.0.0", temperature: 0.5 },
    weight_versions: [{ version: 3, start: 2, end: 4 }],
  });
  const again = await group([
    [1, GOOD],
    [0, GOOD],
  ]);
  expect(again).toEqual(made);
});

test("a group with equal rewards stores nothing, but its lengths are known", async () => {
  const made = await group([
    [1, GOOD],
    [1, GOOD],
    [null, GOOD],
  ]);
  const lengths = { output: 2, total: 4, turns: 1 };
  expect(made).toMatchObject({
    ...{ group: 7, object: null, samples: [], untrainable: {} },
    lengths: { ro_run_7_0_0_mac: lengths, ro_run_7_1_0_mac: lengths },
  });
});

test("members without samples are counted by cause, also if they cannot be read; the others are used", async () => {
  const { tokens } = GOOD;
  const broken = { ...GOOD, tokens: tokens && { ...tokens, completion_ids: "AAAAAAA=" } };
  const made = await group([
    [1, GOOD],
    [0, turn(null)],
    [0, { ...GOOD, tokens: null }],
    [0, broken],
  ]);
  expect(made?.samples.map(({ rollout_id }) => rollout_id)).toEqual(["ro_run_7_0_0_mac"]);
  expect(made?.untrainable).toEqual({ missing_logprob: 1, no_tokens: 1, unreadable: 1 });
});

test("a filter that is enforced leaves a rollout out of the rows only: it counts in the mean, and in the lengths", async () => {
  const sample_filters = [{ kind: "repetition", window: 2, prob_threshold: 0.99, enforce: true }] as const;
  const filtering = { ...SPEC, training: { ...training, sample_filters } };
  const given = [[1, GOOD] as const, [0, turn([-0.001, -0.001])] as const, [null, turn([-0.001, -0.001])] as const];
  const made = await group(given, undefined, filtering);
  expect(made?.samples.map(({ rollout_id }) => rollout_id)).toEqual(["ro_run_7_0_0_mac"]);
  expect([made?.flagged, made?.filtered, made?.untrainable]).toEqual([{ repetition: 1 }, { repetition: 1 }, {}]);
  expect(Object.keys(made?.lengths ?? {})).toEqual(["ro_run_7_0_0_mac", "ro_run_7_1_0_mac"]);
  const counting = { ...training, sample_filters: [{ ...sample_filters[0], enforce: false }] };
  const counted = await group(given, undefined, { ...SPEC, training: counting });
  expect([counted?.flagged, counted?.filtered, counted?.samples.length]).toEqual([{ repetition: 1 }, {}, 2]);
});

test("the counts agree with the rows in the object, by their branches", async () => {
  const { tokens } = GOOD;
  const anew = { ...GOOD, index: 1, tokens: tokens && { ...tokens, forked: true } };
  const made = await group([
    [1, GOOD, anew],
    [0, GOOD],
    [0, turn(null)],
  ]);
  const text = new TextDecoder().decode(await unzipped(made?.object?.sha256 ?? ""));
  const ids = text
    .trimEnd()
    .split("\n")
    .map((line): string => JSON.parse(line).sample_id);
  const first = ids.filter((id) => id.endsWith(".0")).length;
  expect([ids.length, first]).toEqual([3, 2]);
  expect(made?.branches).toEqual({ clean: first, forked: ids.length - first, realigned: 0 });
  const alike = await group([
    [1, GOOD],
    [1, GOOD],
  ]);
  expect(alike?.branches).toEqual({ clean: 0, forked: 0, realigned: 0 });
});

test("samples of weights that cannot have been published are in no row, and are counted", async () => {
  const given: Given[] = [
    [1, GOOD],
    [0, { ...GOOD, policy_version: "4" }],
    [0, { ...GOOD, policy_version: "-1" }],
  ];
  const made = await group(given, 3);
  expect(made?.samples.map(({ policy_version_end }) => policy_version_end)).toEqual([3]);
  expect(made?.untrainable).toEqual({ unpublished_version: 2 });
});

test("a run that trains nothing has no samples", async () => {
  const { training: _, ...spec } = SPEC;
  const parts = [{ members: [], trajectories: [] }, new Subrequests()] as const;
  expect(await samplesOfGroup(env, spec, environment, ...parts)).toEqual({ samples: null, pending: [] });
});
