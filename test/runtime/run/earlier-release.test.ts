/** What the release before this one stored and sent, recorded from it, meets the objects of this one. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { NewRun } from "../../../src/db/runs.ts";
import { RunObject } from "../../../src/index.ts";
import type {
  GroupsMessage,
  RolloutReport,
  RolloutSpec,
  RunSpec,
  ScoredMember,
  ScoresMessage,
} from "../../../src/runtime/contract/wire.ts";
import { findEnvironment } from "../../../src/runtime/environment/environments.ts";
import { createChunks, writeChunks } from "../../../src/runtime/kit/chunks.ts";
import messages from "../fixtures/messages-1.json" with { type: "json" };
import facts from "../fixtures/rollout-schema-1.json" with { type: "json" };
import { acceptedOnly, createLossy, deliver, LossyQueue } from "../hand-made.ts";
import { type Door, openPlatform, requestsOf, rolloutAt } from "../platform.ts";
import { GUESSES } from "../rows.ts";
import { script } from "../script.ts";

let platform: Door;
let template: string;
beforeAll(async () => {
  platform = await openPlatform();
  const request = { environment: "guess-number", environment_args: { max: 3 }, seed: 5 };
  template = (await platform.finish({ ...request, model: script(GUESSES), num_examples: 1 })).id;
});

/** The messages as they are on their way: typed by what the release before promised, and no more. */
interface Recorded {
  readonly "run.create": readonly [RunSpec];
  readonly "rollout-groups": GroupsMessage;
  readonly "rollout.start": readonly [RolloutSpec, number];
  readonly "run.answered": readonly [RolloutReport];
  readonly "rollout-scores": ScoresMessage;
  readonly "run.scored": readonly [readonly ScoredMember[]];
}

async function acceptedNow() {
  const model = script(GUESSES);
  return { model, row: await acceptedOnly(platform, template, { model }) };
}

/** A recording with the names of today in the place of its own. */
function asOf<T>(recording: unknown, row: NewRun): T {
  const { scope } = platform;
  const { version = "", digest = "" } = findEnvironment("guess-number") ?? {};
  const names: Record<string, string> = {
    "{org}": scope.orgId,
    "{project}": scope.projectId,
    "{run}": row.id,
    "{rollout}": rolloutAt(row.id),
    "{endpoint}": row.endpoint_id,
    "{version}": version,
    "{digest}": digest,
    "{model}": row.model,
  };
  const named = (value: unknown): unknown => {
    if (typeof value === "string") {
      return Object.entries(names).reduce((text, [from, to]) => text.replaceAll(from, to), value);
    }
    if (Array.isArray(value)) return value.map(named);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, named(inner)]));
  };
  return named(recording) as T;
}

/** As the release before created it, with a queue that loses the start. */
function created(row: NewRun, spec: RunSpec): Promise<void> {
  const queues = { ROLLOUT_GROUPS: new LossyQueue(env.ROLLOUT_GROUPS) };
  return platform.inRun(row.id, (_, state) => new RunObject(state, { ...env, ...queues }).create(spec));
}

test("a rollout stored in the middle by the release before goes on, and no answered turn is sampled again", async () => {
  const { model, row } = await acceptedNow();
  await createLossy(platform, row);
  const id = rolloutAt(row.id);
  await platform.inRollout(id, async (_, { storage }) => {
    createChunks(storage.sql);
    for (const { kind, item, value } of asOf<typeof facts>(facts, row)) {
      writeChunks(storage.sql, kind, item, value);
    }
    await storage.setAlarm(Date.now());
  });
  expect((await platform.ended(row.id)).counts).toMatchObject({ scored: 1, failed: {} });
  const rollout = await platform.rollout(id);
  expect(rollout).toMatchObject({ reward: 1, failed_calls: [] });
  expect(rollout.turns.map(({ calls }) => calls)).toEqual([1, 2]);
  const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  expect(keys).toEqual([`${id}:1`]);
});

test("a run and its rollouts begin with the messages of the release before", async () => {
  const { model, row } = await acceptedNow();
  const recorded = asOf<Recorded>(messages, row);
  await created(row, recorded["run.create"][0]);
  const message = { ...recorded["rollout-groups"], sent_at: Date.now() };
  expect(await deliver("rollout-groups", [message])).toEqual(["0"]);
  const ended = await platform.ended(row.id);
  expect(ended).toMatchObject({ status: "completed", counts: { scored: 1 } });
  expect((await requestsOf(model)).length).toBe(ended.report.calls);
});

test("a rollout begins with the start of the release before", async () => {
  const { row } = await acceptedNow();
  const recorded = asOf<Recorded>(messages, row);
  await created(row, recorded["run.create"][0]);
  const [spec] = recorded["rollout.start"];
  const standing = await platform.inRollout(rolloutAt(row.id), (rollout) => rollout.start(spec, Date.now()));
  expect(standing).toMatchObject({ state: "running" });
  expect((await platform.ended(row.id)).counts).toMatchObject({ scored: 1 });
});

test("a report and scores of the release before end their rollout, and are read as those of this one", async () => {
  const { model, row } = await acceptedNow();
  const recorded = asOf<Recorded>(messages, row);
  await created(row, recorded["run.create"][0]);
  const [report] = recorded["run.answered"];
  const answered = () => platform.inRun(row.id, (run) => run.answered(report));
  expect(await answered()).toEqual({ known: true });
  expect(await deliver("rollout-scores", [recorded["rollout-scores"]])).toEqual(["0"]);
  // The scores the release before sent for it come second, and change nothing.
  await platform.inRun(row.id, (run) => run.scored(recorded["run.scored"][0]));
  expect(await answered()).toEqual({ known: true });
  expect(await platform.ended(row.id)).toMatchObject({
    status: "completed",
    counts: { scored: 1 },
  });
  const rollout = await platform.rollout(rolloutAt(row.id));
  expect(rollout).toMatchObject({ outcome: "scored", reward: 1, failed_calls: [] });
  expect(rollout.turns.length).toBe(2);
  expect(await requestsOf(model)).toEqual([]);
});
