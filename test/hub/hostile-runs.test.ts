/** Runs whose environment attacks the platform by some rows, while 30 other rollouts of the run are played and scored. */
import { beforeAll, expect, inject, test } from "vitest";
import { expectLaw, openPlatform, type TestApi } from "../kernel/platform.ts";
import { script } from "../kernel/script.ts";
import { pack, send } from "./packages.ts";

const HONEST = 30;
let platform: TestApi;

const name = `hostile-${crypto.randomUUID().slice(0, 8)}/hostile`;

beforeAll(async () => {
  platform = await openPlatform();
  const code = inject("bundles")["hostile"]?.text ?? "";
  const files = { "package/examples.jsonl": '{"question":"honest"}' };
  const published = await send(platform, await pack({ name, version: "1.0.0", code, files }), "allow_failing=true");
  expect(published.status, await published.text()).toBe(201);
});

/** Plays the attacks beside honest rollouts, and returns what came of each attack. */
async function attacked(attacks: readonly string[], limits: object = {}) {
  const honest = Array.from({ length: HONEST }, (_, at) => ({ question: `honest ${at}` }));
  const rows = [...honest, ...attacks.map((question) => ({ question }))];
  const { id, counts } = await platform.finish({
    environment: name,
    dataset: rows,
    min_scored: 0,
    max_concurrent: rows.length,
    model: script(["It is done."]),
    limits,
  });
  expectLaw({ ...counts });
  const results = await platform.results(id);
  const ended = new Map(results.map((row) => [row.example_id, row]));
  const scored = honest.map((_, at) => ended.get(at)?.outcome);
  expect(scored).toEqual(honest.map(() => "scored"));
  return Object.fromEntries(
    attacks.map((attack, at) => {
      const { outcome, reward, error, scoring_errors = [] } = ended.get(HONEST + at) ?? {};
      return [attack, { outcome, reward, why: error?.message ?? scoring_errors.map((one) => one.error).join() }];
    }),
  );
}

const failed = (why: string) => ({ outcome: "failed", reward: null, why: expect.stringContaining(why) });
const unscored = (why: string) => ({ outcome: "unscored", reward: null, why: expect.stringContaining(why) });

test("events that are lies end only their own rollout, with the reason, and 30 other rollouts are scored", async () => {
  const reply = "the reply of its isolate:";
  const expected = {
    "no events": failed(`${reply} performed nothing`),
    "events without end": failed(`${reply} is not a list of at most 3`),
    "an object": failed(`${reply} is not a text (object)`),
    "a function": failed(`${reply} is not a text (function)`),
    "a map": failed(`${reply} is not a text (object)`),
    "a bigint": failed(`${reply} is not a text (bigint)`),
    "a cycle": failed(`${reply} is not a text (object)`),
    "no JSON": failed(`${reply} is not JSON`),
    "100 MB": failed("limited to 32MiB"),
    "20 MB": failed(`${reply} has 20000062 characters; the maximum is 16777216`),
    "a state of 1 MB": failed(`${reply} [0].event.state: is more than 262144 bytes`),
    "a million values": failed(`${reply} has more than 500000 values`),
    "ten thousand levels": failed("is nested more than 100 deep"),
    "an infinite number": failed("JSON cannot represent Infinity"),
    "a prototype": failed("[0].event.state.__proto__: is not a valid name"),
    "a million tools": failed(`${reply} [0].tools`),
    "a tool that is none": failed(`${reply} [0].tools`),
    "an event of the platform": failed(`${reply} [0].event`),
    "an event out of order": failed(`${reply} [0].event: closed does not follow setup`),
    "an error of 5 MB": failed("… [cut]"),
    "messages that are none": failed(`${reply} [1].event`),
  };
  expect(await attacked(Object.keys(expected))).toEqual(expected);
});

test("scores that are lies are null with the reason, and 30 other rollouts are scored", async () => {
  const reply = "EnvError: the reply of its isolate:";
  const expected = {
    "a reward that is NaN": unscored(`${reply} is not JSON`),
    "a reward that is infinite": unscored(`${reply} records[0].reward`),
    "a reward that is a text": unscored(`${reply} records[0].reward`),
    "no reward and no reason": unscored(`${reply} records[0].reward`),
    "a score of another name": unscored(`${reply} records[0].scores: "other" is not one of its scores`),
    "a score twice": unscored(`${reply} records[0].scores: has a name twice`),
    "the score of another rollout": unscored(`${reply} records[0].rollout_id`),
    "no record": unscored(`${reply} records: are 0 for a group of 1`),
    "work below zero": unscored(`${reply} steps`),
    "credits of turns that are none": unscored(`${reply} records[0].steps: are 50000 for 1 turns`),
    "a question to no judge": unscored(`${reply} pending[0].judge`),
    "recursion while scoring": unscored("RangeError: Maximum call stack size exceeded"),
  };
  expect(await attacked(Object.keys(expected))).toEqual(expected);
});

test("hooks that recurse, hang, or imitate the platform's errors end only their own rollout", async () => {
  const expected = {
    recursion: failed("Maximum call stack size exceeded"),
    "a promise that never settles": failed("setupState did not finish within 10 s"),
    "an error that looks like the platform's": failed("Network connection lost."),
    "a timer after the end": { outcome: "scored", reward: 1, why: "" },
    "a rejection that nobody handles": { outcome: "scored", reward: 1, why: "" },
  };
  expect(await attacked(Object.keys(expected), { setup_timeout_s: 10 })).toEqual(expected);
});
