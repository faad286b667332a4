/** Compares the export of a run with rows made again from the stored data, by separate code. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import {
  type Capabilities,
  dataset,
  defineEnvironment,
  EnvGroup,
  inject,
  MultiTurnEnv,
  SingleTurnEnv,
  StatefulToolEnv,
  tool,
} from "../../../src/core/entry.ts";
import { segmentLines } from "../hand-made.ts";
import { openPlatform, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { type Asked, type Exported, rowsByHand } from "../rows-by-hand.ts";
import { questionScript, type Script, script } from "../script.ts";
import { type StoredRun, storedRun } from "../stored-rollouts.ts";

const Task = z.object({ question: z.string(), answer: z.string() });
const about = (names: readonly string[]) =>
  dataset(
    Task,
    names.map((name) => ({ question: name, answer: `of ${name}` })),
  );

/** Every rollout draws its reward at random, so that those of a group differ; a task may prevent a score. */
const drawn = (_state: unknown, can: Capabilities) => ({ drawn: Math.floor(can.random() * 4) });
const rubric = {
  rewards: {
    drawn: ({ state, task }: { state: { drawn: number }; task: z.output<typeof Task> }) =>
      task.question.startsWith("unscored") ? null : state.drawn / 2,
  },
};

const find = tool({
  name: "find",
  description: "Finds it.",
  parameters: z.object({ city: z.string(), days: z.array(z.number()), deep: z.json(), n: z.number() }).partial(),
  hidden: { drawn: inject<number>() },
  // So that the rollouts of a group have different texts.
  run: ({ drawn, ...asked }) => `found ${Object.keys(asked).join()}, ${drawn} times`,
});

/** Longer than what a run stores with its rows. */
const LONG = "long ".padEnd(40_000, ".");

function talk(names: readonly string[]) {
  return new MultiTurnEnv({
    dataset: about(names),
    systemPrompt: "Be brief.",
    setupState: drawn,
    envResponse: (_messages, state) => {
      const told = [{ role: "user" as const, content: `You drew ${state.drawn}.` }];
      if (state.turn > 1) state.final_env_response = [{ role: "user", content: "Enough." }];
      return told;
    },
    maxTurns: 4,
    rubric,
  });
}

function desk(names: readonly string[]) {
  return new StatefulToolEnv({
    dataset: about(names),
    setupState: drawn,
    tools: [find],
    updateToolArgs: (_name, args, _messages, { drawn }) => ({ ...args, drawn }),
    maxTurns: 3,
    rubric,
  });
}

const mixed = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new EnvGroup({
      talk: talk(["talk", "hard", "unscored"]),
      work: new EnvGroup({ desk: desk([VALID, SPOILED]) }),
      once: new SingleTurnEnv({
        dataset: dataset(z.object({ prompt: z.string() }), [{ prompt: "a bare text" }]),
        rubric: { rewards: { said: ({ completion }) => completion.length } },
      }),
    }),
});
const alone = defineEnvironment({ args: z.strictObject({}), build: () => desk(["short", LONG]) });

const city = { city: "Zürich \u{1f600}", days: [1, 2.5, -3e-7], deep: { none: null, "": [{}] } };
const call = (text: string, id = "call_first") => ({ id, name: "find", arguments: text });
const TWO = [call(JSON.stringify(city)), call("{}", "call_second")];
const VALID = questionScript([
  { content: "Both.", reasoning_content: "Two at once.", tool_calls: TWO },
  { tool_calls: [call('{"n":12.50,"deep":1e300}', "call_third")] },
  "It is found.",
]);
/** The second call cannot be in a row. */
const SPOILED = questionScript([
  { tool_calls: [call("{}"), call(`{"deep":${"[".repeat(120)}${"]".repeat(120)}}`, "call_deep")] },
  "It is not.",
]);
const FLAKY: Script["when"] = {
  hard: [{ fault: { kind: "status", status: 404 }, attempts: 1, reply: "Draw." }, "So.", "Well."],
};
/** The arguments of each slot of a group: of six, four cannot be a row. */
const SLOTS = [
  ...['{"n":9007199254740991}', "[1]", '{"n":9007199254740993}', '{"half":"\\ud83d"}', '{"open":'],
  '{"text":"9007199254740993"}',
].map((text) => ({ tool_calls: [call(text, "c")] }));

let api: TestApi;
const runs = new Map<"mixed" | "alone", string>();

beforeAll(async () => {
  api = await openPlatform();
  for (const [id, { args, needs, load }] of Object.entries({ mixed, alone })) {
    const name = `exported-${id}`;
    registerOnce({ id: name, version: "2.1.0", digest: `sha256:${name}`, args, needs, load });
  }
});

async function mixedRun(): Promise<string> {
  const model = script(["Draw.", "I see.", "Thanks."], FLAKY);
  const asked = { environment: "exported-mixed", model, rollouts_per_example: 6, min_scored: 0 };
  const { id } = await api.finish(asked);
  await api.post(`/v1/runs/${id}/retry`, { classes: ["provider"] });
  await api.ended(id);
  return id;
}

async function aloneRun(): Promise<string> {
  const model = script([], undefined, { slots: SLOTS });
  const asked = { environment: "exported-alone", model, rollouts_per_example: 6 };
  return (await api.finish(asked)).id;
}

/** Played once, by the first test that needs it: its id. */
async function idOf(name: "mixed" | "alone"): Promise<string> {
  const id = runs.get(name) ?? (await (name === "mixed" ? mixedRun() : aloneRun()));
  runs.set(name, id);
  return id;
}

const FORMATS = ["sft", "dpo", "verifiers"] as const;
const QUERIES: readonly Asked[] = FORMATS.flatMap((format) => [
  { format },
  { format, min_reward: 1 },
  { format, best_of_group: true },
  { format, dedupe: true },
  { format, min_reward: 0.5, best_of_group: true, dedupe: true },
]);

/** All pages together, and what each reports as left out. */
async function answered(id: string, asked: Asked, limit: number) {
  const query = new URLSearchParams(Object.entries({ ...asked, limit }).map(([k, v]) => [k, String(v)]));
  const rows: unknown[] = [];
  const notes: z.infer<typeof Note>[] = [];
  let path: string | undefined = `/v1/runs/${id}/export?${query}`;
  while (path !== undefined) {
    const reply: Response = await api.ask(path);
    expect(reply.status).toBe(200);
    const text = new TextDecoder().decode(await reply.arrayBuffer());
    rows.push(...text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)])));
    const note = reply.headers.get("x-left-out");
    if (note !== null) notes.push(Note.parse(JSON.parse(note)));
    path = reply.headers.get("link")?.match(/^<(.+)>; rel="next"$/)?.[1];
  }
  return { rows, notes };
}
const Note = z.object({
  rows: z.number(),
  reasons: z.record(z.string(), z.number()),
  rollouts: z.array(z.string()),
});

/** Returns the expected rows, for callers that need their number. */
async function expectRecomputed(stored: StoredRun, asked: Asked, limit: number): Promise<Exported> {
  const expected = rowsByHand(stored, asked);
  const { rows, notes } = await answered(stored.run.id, asked, limit);
  expect(rows).toStrictEqual(expected.rows);
  expect(notes.flatMap(({ rollouts }) => rollouts)).toEqual(expected.left_out.map(({ rollout_id }) => rollout_id));
  expect(notes.reduce((sum, note) => sum + note.rows, 0)).toBe(expected.left_out.length);
  const reasons = notes.flatMap((note) =>
    Object.entries(note.reasons).flatMap(([reason, count]) => Array<string>(count).fill(reason)),
  );
  expect(reasons.sort()).toEqual(expected.left_out.map(({ reason }) => reason).sort());
  return expected;
}

async function expectAllRecomputed(id: string, limit: number): Promise<void> {
  const stored = await storedRun(api, id);
  for (const asked of QUERIES) await expectRecomputed(stored, asked, limit);
}

test.each(["mixed", "alone"] as const)(
  "the export of the run %s is what is stored of it, in every format and by every filter, before compaction and after",
  async (name) => {
    const id = await idOf(name);
    await expectAllRecomputed(id, 5);
    await segmentLines(api, id);
    const { rollouts } = await storedRun(api, id);
    expect(rollouts.map(({ place }) => place)).toContain("segment");
    await expectAllRecomputed(id, 1000);
  },
);

test("the data covers members of groups, several turns, pairs with calls, and rows left out for each reason", async () => {
  const stored = await storedRun(api, await idOf("mixed"));
  const of = (format: Asked["format"]) => expectRecomputed(stored, { format }, 1000);
  const [sft, dpo, verifiers] = [await of("sft"), await of("dpo"), await of("verifiers")];
  // Six tasks of six rollouts: one is played twice, one has no score, one cannot be a row.
  expect([stored.rollouts.length, verifiers.rows.length]).toEqual([42, 36]);
  expect([sft.rows.length, sft.left_out.length]).toEqual([24, 6]);
  expect(new Set(verifiers.rows.map(({ info }) => JSON.stringify(info)))).toEqual(
    new Set(['{"env_id":"talk"}', '{"env_id":"once"}', '{"env_id":["work","desk"]}']),
  );
  const texts = dpo.rows.map((row) => JSON.stringify(row));
  expect(texts.some((text) => text.includes("You drew"))).toBe(true);
  const called = '"arguments":{"city":"Zürich \u{1f600}"';
  expect(texts.some((text) => text.split(called).length === 3)).toBe(true);
  expect(dpo.left_out.length).toBeGreaterThan(0);
  const slots = await storedRun(api, await idOf("alone"));
  const { left_out } = await expectRecomputed(slots, { format: "sft" }, 1000);
  expect(Map.groupBy(left_out, ({ reason }) => reason).size).toBe(4);
});
