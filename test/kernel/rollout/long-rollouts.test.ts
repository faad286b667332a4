import { beforeAll, expect, test } from "vitest";
import { openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { GUESSES } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

test("a rollout that takes longer than one alarm continues in the next, and makes no call twice", async () => {
  const waits = { kind: "status", status: 429, headers: { "retry-after": "2" } } as const;
  const [first = "", ...rest] = GUESSES;
  const model = script([{ fault: waits, times: 1, ...reply(first) }, ...rest]);
  const run = await platform.start({
    environment: "guess-number",
    environment_args: { max: 3 },
    model,
    num_examples: 1,
    seed: 5,
  });
  await requestsOf(model, 1);
  const id = rolloutAt(run.id);
  // From its next alarm on, each alarm allows a single step.
  const alarms = await platform.inRollout(id, ({ object: rollout }) => {
    const times: number[] = [];
    const alarm = rollout.alarm.bind(rollout);
    rollout.alarmMs = -1;
    rollout.alarm = () => {
      times.push(Date.now());
      return alarm();
    };
    return times;
  });
  expect((await platform.ended(run.id)).counts).toMatchObject({ scored: 1 });
  const { turns } = await platform.rollout(id);
  // A step is a call or a reply; the close is the last one.
  expect(alarms.length).toBeGreaterThanOrEqual(2 * turns.length);
  const keys = (await requestsOf(model)).map(({ idempotency_key }) => idempotency_key);
  expect(keys).toEqual([`${id}:0`, ...turns.map(({ index }) => `${id}:${index}`)]);
});

function reply(scripted: (typeof GUESSES)[number]) {
  if (typeof scripted === "object" && "fault" in scripted) throw new Error("a fault is no reply");
  return { reply: scripted };
}
