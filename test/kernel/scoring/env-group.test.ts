/** A group of environments on the real platform: rows, calls, scores, listing, forks, and content of several kinds. */
import { beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { EnvironmentView } from "../../../src/contract/run.ts";
import { dataset, defineEnvironment, EnvGroup, SingleTurnEnv, ToolEnv, textOf, tool } from "../../../src/core/entry.ts";
import { expectLaw, openPlatform, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { registerOnce } from "../registered.ts";
import { script } from "../script.ts";

const Sum = z.object({ question: z.string(), answer: z.string() });
const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0K" } };
const shown = [{ type: "text", text: "a picture" }, picture];
const show = tool({
  name: "show",
  description: "Shows a picture.",
  parameters: z.object({}),
  run: () => shown,
});

const mixed = defineEnvironment({
  args: z.strictObject({ sums: z.int().default(2) }),
  build: ({ sums }) => {
    const math = new SingleTurnEnv({
      dataset: dataset(Sum, {
        length: sums,
        row: (index) => ({ question: `a sum: ${index} + 1?`, answer: String(index + 1) }),
      }),
      sampling: { temperature: 0.25, extra_body: { seed_words: 1, repetition_penalty: 1.1 } },
      rubric: {
        rewards: { right: ({ completion, task }) => textOf(completion[0]) === task.answer },
      },
    });
    const pictures = new ToolEnv({
      dataset: dataset(z.object({ prompt: z.json() }), [
        { prompt: [{ role: "user", content: [{ type: "text", text: "Look." }, picture] }] },
      ]),
      tools: [show],
      rubric: {
        rewards: { looked: { weight: 0.5, fn: ({ completion }) => completion.length === 3 } },
      },
    });
    return new EnvGroup({ math, pictures });
  },
});

let platform: TestApi;
beforeAll(async () => {
  const { args, needs, load } = mixed;
  registerOnce({ id: "mixed", version: "1.0.0", digest: "sha256:mixed", args, needs, load });
  platform = await openPlatform();
});

const LOOK = [{ tool_calls: [{ name: "show", arguments: {} }] }, "Seen."];

test("a run of a group plays each row like its environment would, and scores it with only that one's metrics", async () => {
  const model = script(LOOK, { "a sum": ["1"] });
  const extra_body = { repetition_penalty: null };
  const run = await platform.finish({ environment: "mixed", model, sampling: { extra_body } });
  expect(run).toMatchObject({ status: "completed", num_examples: 3 });
  expectLaw(run.counts);
  const rows = (await platform.results(run.id)).sort((a, b) => a.example_id - b.example_id);
  const counted = { num_turns: 2, total_tool_calls: 1, show_calls: 1 };
  expect(rows.map(({ reward, metrics, info }) => ({ reward, metrics, info }))).toEqual([
    { reward: 1, metrics: { right: 1, num_turns: 1 }, info: { env_id: "math" } },
    { reward: 0, metrics: { right: 0, num_turns: 1 }, info: { env_id: "math" } },
    { reward: 0.5, metrics: { looked: 1, ...counted }, info: { env_id: "pictures" } },
  ]);
  const sampled = (await requestsOf(model)).map(({ sampling }) => sampling);
  const ofMath = { temperature: 0.25, seed_words: 1, repetition_penalty: null };
  expect(sampled.filter((sampling) => "seed_words" in sampling)).toEqual([ofMath, ofMath]);
  expect(sampled.filter((sampling) => !("seed_words" in sampling)).length).toBe(2);
});

test("parts of a prompt and of a tool's result are stored and shown unchanged", async () => {
  const model = script(LOOK, { "a sum": ["1"] });
  const run = await platform.finish({ environment: "mixed", environment_args: { sums: 0 }, model });
  const rollout = await platform.rollout(rolloutAt(run.id));
  expect(rollout.prompt).toEqual([{ role: "user", content: [{ type: "text", text: "Look." }, picture] }]);
  expect(rollout.completion[1]).toMatchObject({ role: "tool", content: shown });
  const request = { turn: 0, model: script(["unread", "Seen again."]) };
  const forked = await platform.post(`/v1/rollouts/${rollout.id}/fork`, request);
  const { id } = await forked.json<{ id: string }>();
  const ended = await platform.ended(id);
  expect(ended.report?.reward?.mean).toBe(0.5);
});

test("rows sent with a run name their environment, and one that belongs to none is refused", async () => {
  const asked = async (info: object) => {
    const rows = [{ question: "a sum: 1 + 1?", answer: "2", info }];
    const endpoint = { base_url: "https://model.test/v1" };
    const body = { environment: "mixed", model: "m", dataset: rows, endpoint };
    return (await (await platform.post("/v1/runs", body)).json<{ error: object }>()).error;
  };
  expect(await asked({ env_id: "chess" })).toMatchObject({
    code: "invalid_row",
    param: "rows[0].info.env_id",
    message: expect.stringContaining("no environment chess: use one of math, pictures"),
  });
});

test("rows that cannot be built are refused before a run begins, with the environment's message", async () => {
  const { args, needs, load } = defineEnvironment({
    args: z.strictObject({}),
    build: () => {
      const lost = () => {
        throw new Error("the file is gone");
      };
      return new SingleTurnEnv({ dataset: dataset(Sum, { rows: lost }), rubric: {} });
    },
  });
  registerOnce({ id: "rowless", version: "1.0.0", digest: "sha256:rowless", args, needs, load });
  const endpoint = { base_url: "https://model.test/v1" };
  const reply = await platform.post("/v1/runs", { environment: "rowless", model: "m", endpoint });
  expect(await reply.json()).toMatchObject({
    error: {
      code: "invalid_request",
      param: "environment_args",
      message: "rowless cannot make its rows: the file is gone",
    },
  });
});

test("a group is listed like any environment", async () => {
  const view = EnvironmentView.parse(await (await platform.ask("/v1/environments/mixed")).json());
  expect(view).toMatchObject({ dataset: "rows", needs: [], judges: [] });
  expect(view.row?.["description"]).toContain("math, pictures");
});
