/**
 * The intended differences from verifiers (docs/verifiers.md), rule by rule, through an author's interfaces. Those that
 * need a running platform are in test/kernel (divergences, run-retry, permits).
 */
import {
  dataset,
  defineEnvironment,
  inject,
  JudgeRubric,
  MaybeThinkParser,
  MultiTurnEnv,
  Rubric,
  RubricGroup,
  SandboxError,
  SingleTurnEnv,
  StatefulToolEnv,
  ToolEnv,
  textOf,
  tool,
  XMLParser,
} from "rollcall";
import { runRollout, scoreGroup, scoreState, scripted } from "rollcall/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { ModelError } from "../../src/contract/errors.ts";
import { normalizeMessages } from "../../src/contract/messages.ts";
import { mergeSampling } from "../../src/contract/sampling.ts";
import { verifiersRow } from "../../src/core/verifiers/row.ts";
import { finishedRow } from "../fixtures/finished-row.ts";

const Task = z.object({ question: z.string(), answer: z.string().default("") });
const rows = dataset(Task, "uploaded");
const task = { question: "q", answer: "a" };
const state = { prompt: [], completion: [] };

function single(rubric: ConstructorParameters<typeof Rubric>[0]) {
  return new SingleTurnEnv({ dataset: rows, rubric: new Rubric(rubric) });
}

function throwing(message: string) {
  return () => {
    throw new Error(message);
  };
}

/** The model's input after one call of a tool, and how the rollout ended. */
async function answerTo(run: () => unknown, args: string, more: object = {}) {
  const only = tool({
    name: "only",
    description: "The only tool.",
    parameters: z.object({ x: z.number().optional() }),
    run,
  });
  const environment = new ToolEnv({ dataset: rows, tools: [only], rubric: {}, ...more });
  const calls = [{ tool_calls: [{ name: "only", arguments: args }] }, "done"];
  const report = await runRollout(environment, { task, model: scripted(calls) });
  return { report, content: report.completion.find(({ role }) => role === "tool")?.content };
}

describe("intended differences", () => {
  test("D1: a missing score is null with its error, and so is a reward that needed it", async () => {
    const scored = await scoreState(
      new Rubric({
        rewards: { good: () => 1, bad: throwing("broken") },
        metrics: { missing: () => null },
      }),
      { ...state },
    );
    expect(scored.reward).toBeNull();
    expect(scored.metrics).toEqual({ good: 1, bad: null, missing: null });
    expect(scored.scoring_errors).toMatchObject([
      { function: "bad", error: expect.stringContaining("broken"), retryable: false },
      { function: "missing" },
    ]);
    const metric = new Rubric({ rewards: { good: () => 1 }, metrics: { missing: () => null } });
    expect(await scoreState(metric, { ...state })).toMatchObject({ reward: 1 });
  });

  test("D2: a rollout that ended with an error is not scored; one that ran out of time or turns is", async () => {
    let asked = 0;
    const counting = {
      rewards: {
        one: () => {
          asked += 1;
          return 1;
        },
      },
    };
    const model = () => {
      throw new ModelError("down");
    };
    const failed = await runRollout(single(counting), { task, model });
    expect(failed).toMatchObject({ reward: null, metrics: {}, error: { error: "ModelError" } });
    expect(asked).toBe(0);
    const cut = { content: "half a sen", finish_reason: "length" } as const;
    const truncated = await runRollout(single(counting), { task, model: scripted([cut]) });
    expect(truncated).toMatchObject({ reward: 1, is_truncated: true });
    const late = new MultiTurnEnv({ dataset: rows, timeoutMs: 0, rubric: counting });
    const timedOut = await runRollout(late, { task, model: scripted([]) });
    expect(timedOut).toMatchObject({ reward: 1, stop_condition: "timeout_reached", turns: 0 });
  });

  test("D3: an error of environment code is an EnvError of its rollout, and cleanup still runs", async () => {
    const cleaned: string[] = [];
    const environment = new MultiTurnEnv({
      dataset: rows,
      rubric: {},
      envResponse: throwing("the map is torn"),
      cleanup: { tidy: () => void cleaned.push("tidied") },
    });
    const report = await runRollout(environment, { task, model: scripted(["a"]) });
    expect(report).toMatchObject({ stop_condition: "has_error", reward: null });
    expect(report.error).toMatchObject({ error: "EnvError", error_chain_str: "EnvError -> Error" });
    expect(cleaned).toEqual(["tidied"]);
    const empty = await scoreGroup(new Rubric(), [{ ...state }, { ...state }]);
    expect(empty).toMatchObject([
      { reward: 0, metrics: {} },
      { reward: 0, metrics: {} },
    ]);
    const short = new Rubric({ groupRewards: { short: () => [1] } });
    expect(await scoreGroup(short, [{ ...state }, { ...state }])).toMatchObject([
      { reward: null, scoring_errors: [{ function: "short" }] },
      { reward: null, scoring_errors: [{ function: "short" }] },
    ]);
  });

  test("D4: every cleanup handler runs, and a failing one hides neither another nor the result", async () => {
    const ran: string[] = [];
    const environment = new MultiTurnEnv({
      dataset: rows,
      maxTurns: 1,
      rubric: { rewards: { one: () => 1 } },
      cleanup: {
        first: {
          priority: 2,
          run: () => {
            ran.push("first");
            throw new Error("first failed");
          },
        },
        second: { priority: 1, run: () => void ran.push("second") },
      },
    });
    const report = await runRollout(environment, { task, model: scripted(["a"]) });
    expect(ran).toEqual(["first", "second"]);
    expect(report).toMatchObject({ reward: 1, error: null });
    expect(report.cleanup_errors.map(({ message }) => message)).toEqual([expect.stringContaining("first failed")]);
  });

  test("D5: a stop condition that throws ends its rollout with an EnvError", async () => {
    const stops = { odd: throwing("cannot tell") };
    const environment = new MultiTurnEnv({ dataset: rows, rubric: {}, stops });
    const report = await runRollout(environment, { task, model: scripted([]) });
    expect(report).toMatchObject({ stop_condition: "has_error", error: { error: "EnvError" } });
  });

  test("D6: the advantage is computed once, from the final rewards that exist", async () => {
    const scoreOf = (args: object) => Reflect.get(args, "first");
    const group = new RubricGroup([
      new Rubric({ rewards: { first: scoreOf } }),
      new Rubric({ rewards: { flat: { weight: 2, fn: () => 1 } } }),
    ]);
    const steps = [{ reward: 0.9, advantage: null }, {}];
    const members = [{ ...state, first: 1, trajectory: steps }, { ...state, first: 0 }, { ...state }];
    const scored = await scoreGroup(group, members);
    expect(scored.map(({ reward }) => reward)).toEqual([3, 2, null]);
    expect(scored.map(({ advantage }) => advantage)).toEqual([0.5, -0.5, null]);
    expect(scored[0]?.steps).toEqual([
      { reward: 0.9, advantage: 0.5 },
      { reward: 3, advantage: 0.5 },
    ]);
  });

  test("D7: NaN and infinity are not scores, alone or as a sum", async () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const scored = await scoreState(new Rubric({ rewards: { odd: () => value } }), { ...state });
      expect(scored).toMatchObject({ reward: null, metrics: { odd: null } });
      expect(scored.scoring_errors).toHaveLength(1);
    }
    const huge = { fn: () => Number.MAX_VALUE, weight: 2 };
    const scored = await scoreState(new Rubric({ rewards: { huge } }), { ...state });
    expect(scored).toMatchObject({ reward: null, scoring_errors: [{ function: "reward" }] });
  });

  test("D8: a metric with a field's name does not change the field of a flat row", () => {
    const row = verifiersRow(finishedRow({ reward: 1, metrics: { reward: 0.25, exact: 1 } }));
    expect(row).toMatchObject({ reward: 1, exact: 1, metrics: { reward: 0.25, exact: 1 } });
  });

  test("D9: sampling arguments are merged member by member, and a null removes one", () => {
    const under = { temperature: 1, max_tokens: 9, extra_body: { x: 1, deep: { a: 1, b: 1 } } };
    const over = { temperature: 0.5, max_tokens: null, extra_body: { y: 2, deep: { b: 2 } } };
    expect(mergeSampling(under, over)).toEqual({
      temperature: 0.5,
      max_tokens: null,
      extra_body: { x: 1, y: 2, deep: { a: 1, b: 2 } },
    });
  });

  test("D10: an unknown option is an error with its name", async () => {
    const odd = { dataset: rows, rubric: {}, maxTruns: 3 };
    expect(() => new MultiTurnEnv(odd)).toThrow(/maxTruns/);
    expect(() => new Rubric(JSON.parse('{"wieghts": [1]}'))).toThrow(/wieghts/);
    const build = () => new SingleTurnEnv({ dataset: rows, rubric: {} });
    const loader = defineEnvironment({ args: z.strictObject({}), build });
    await expect(loader.load({ sheed: 1 })).rejects.toThrow(/sheed/);
  });

  test("D12: a judge's template is filled in one pass, and other braces stay", async () => {
    const prompt = 'Form: {"q": 1} {other}\nQ: {question}\nA: {answer}\nR: {response}';
    const parts = ["what", "is {answer}?"].map((text) => ({ type: "text", text }));
    const asked: string[] = [];
    const environment = new SingleTurnEnv({
      dataset: dataset(z.object({ prompt: z.array(z.json()), answer: z.string() }), "uploaded"),
      parser: new XMLParser(["answer"]),
      rubric: new JudgeRubric({ name: "ok", prompt, choices: { no: 0, yes: 1 } }),
    });
    await runRollout(environment, {
      task: { prompt: [{ role: "user", content: parts }], answer: "{response}" },
      model: scripted(["no tag, so no answer"]),
      judge: ({ messages }) => {
        asked.push(textOf(messages.at(-1)));
        return '{"verdict": "yes"}';
      },
    });
    expect(asked[0]).toContain('Form: {"q": 1} {other}\nQ: what is {answer}?\nA: {response}\n');
    expect(asked[0]).not.toMatch(/None|null|undefined/);
  });

  test("D13: a tag is literal text, and an unclosed one before a long text is scanned once", () => {
    expect(new XMLParser(["a.b"]).parse("<axb>1</axb>")).toEqual({ "a.b": null });
    const spaces = " ".repeat(50_000);
    // Cubic work would be 10^14 steps: the test would not end.
    const completion = [{ role: "assistant", content: `<answer>${spaces}` }] as const;
    expect(new XMLParser(["answer"]).formatReward(completion)).toBeCloseTo(0.4, 12);
  });

  test("D14: the model's value for a hidden argument is dropped before updateToolArgs", async () => {
    const seen: object[] = [];
    const peek = tool({
      name: "peek",
      description: "Says who asks.",
      parameters: z.object({}),
      hidden: { user: inject<string>() },
      run: ({ user }) => user,
    });
    const environment = new StatefulToolEnv({
      dataset: rows,
      rubric: {},
      tools: [peek],
      setupState: () => ({}),
      updateToolArgs: (_name, args) => {
        seen.push({ ...args });
        return { ...args, user: "the right one" };
      },
    });
    const call = { name: "peek", arguments: { user: "root" } };
    const model = scripted([{ tool_calls: [call] }, "done"]);
    const report = await runRollout(environment, { task, model });
    expect(seen).toEqual([{}]);
    expect(report.completion[1]?.content).toBe("the right one");
  });

  test("D15: an infrastructure error in a tool ends the rollout, whatever stopErrors says", async () => {
    const lost = () => {
      throw new SandboxError("the container is gone");
    };
    for (const more of [{}, { stopErrors: [TypeError] }]) {
      const { report } = await answerTo(lost, "{}", more);
      expect(report).toMatchObject({
        stop_condition: "has_error",
        error: { error: "SandboxError", retryable: true },
      });
    }
  });

  test("D16: results are texts, parts or JSON, and errors have our own messages", async () => {
    const said = async (value: unknown) => (await answerTo(() => value, "{}")).content;
    expect(await said("as it is")).toBe("as it is");
    expect(await said([1, 2, 3])).toBe("[1,2,3]");
    expect(await said({ a: 1 })).toBe('{"a":1}');
    expect(await said(undefined)).toBe("null");
    expect(await said([{ type: "text", text: "a part" }])).toEqual([{ type: "text", text: "a part" }]);
    const { content } = await answerTo(throwing("bad thing"), "{}");
    expect(content).toBe("bad thing");
    for (const args of ["[1]", '"s"', "5"]) {
      expect((await answerTo(() => "ran", args)).content).toMatch(/object/);
    }
    expect((await answerTo(() => "ran", "{bad")).content).toMatch(/\S/);
  });
});

describe("differences due to the language or the platform", () => {
  test("A1: the role developer is read as system; any other unknown role is an error that names it", () => {
    const [message] = normalizeMessages([{ role: "developer", content: "x" }]);
    expect(message).toMatchObject({ role: "system", content: "x" });
    expect(() => normalizeMessages([{ role: "narrator", content: "x" }])).toThrow(/narrator/);
    expect(() => normalizeMessages([{ content: "x" }])).toThrow(/role/);
  });

  test("A2: functions take one object, and a group function is marked as one", async () => {
    const seen = new Set<string>();
    const look = (args: object) => {
      for (const key of Object.keys(args)) seen.add(key);
      return 1;
    };
    const rubric = Rubric.fromLists({
      funcs: [
        { name: "look", fn: look },
        { name: "together", group: true, fn: (group) => group.map((_, at) => at) },
      ],
    });
    const members = await scoreGroup(rubric, [{ ...state, level: "hard" }, { ...state }]);
    expect(members.map(({ reward }) => reward)).toEqual([1, 2]);
    const named = ["prompt", "completion", "answer", "info", "state", "task", "parser", "level"];
    expect([...seen]).toEqual(expect.arrayContaining(named));
  });

  test("A4: a completion loses nothing if a hook shortened the history", async () => {
    class Forgetful extends MultiTurnEnv<z.infer<typeof Task>> {
      override async getPromptMessages(given: Parameters<MultiTurnEnv<z.infer<typeof Task>>["getPromptMessages"]>[0]) {
        const whole = await super.getPromptMessages(given);
        return typeof whole === "string" ? whole : whole.slice(-1);
      }
    }
    const environment = new Forgetful({
      dataset: rows,
      rubric: {},
      maxTurns: 2,
      envResponse: () => "go on",
    });
    const report = await runRollout(environment, { task, model: scripted(["one", "two"]) });
    expect(report.completion.map(({ content }) => content)).toEqual(["go on", "two"]);
  });

  test("A5: an XML parser without fields is refused", () => {
    expect(() => new XMLParser([])).toThrow(/at least one field/);
  });

  test("A6: white space is what trim removes", () => {
    const kept = ["\u200b", "\u001c", "\u001f", "\u0085"];
    const taken = [" ", "\t", "\n", "\u00a0", "\ufeff"];
    const parsed = (space: string) => new XMLParser(["a"]).parse(`<a>${space}x${space}</a>`)["a"];
    expect(kept.map(parsed)).toEqual(kept.map((space) => `${space}x${space}`));
    expect(taken.map(parsed)).toEqual(taken.map(() => "x"));
    expect(new MaybeThinkParser().parse("</think>\ufeff b")).toBe("b");
  });

  test("A7: a tool is declared with a schema, and sent in verifiers' shape", () => {
    const search = tool({
      name: "search",
      description: "Finds things.",
      parameters: z.object({
        query: z.string().describe("what to find"),
        top_k: z.int().default(3),
        lang: z.string().nullable(),
      }),
      run: () => "",
    });
    const environment = new ToolEnv({ dataset: rows, tools: [search], rubric: {} });
    expect(environment.toolDefinitions[0]?.function).toMatchObject({
      name: "search",
      description: "Finds things.",
      strict: true,
      parameters: {
        type: "object",
        title: "search_args",
        additionalProperties: false,
        required: ["query", "top_k", "lang"],
        properties: {
          query: { type: "string", title: "Query", description: "what to find" },
          top_k: { type: "integer", title: "Top K", default: 3 },
          lang: { anyOf: [{ type: "string" }, { type: "null" }], title: "Lang" },
        },
      },
    });
  });

  test("A8: a score is a finite number, a boolean or a decimal text; any other value is invalid", async () => {
    const scoreOf = async (value: unknown) => {
      // The author's code may have no types.
      const rubric = new Rubric({ rewards: { it: () => value as number } });
      return (await scoreState(rubric, { ...state })).reward;
    };
    const good = [2, true, false, "0.5", " 1e-1 ", "-3"];
    expect(await Promise.all(good.map(scoreOf))).toEqual([2, 1, 0, 0.5, 0.1, -3]);
    const bad = [null, undefined, "", " ", "half", "0x10", "1 2", "Infinity", {}, [1]];
    expect(await Promise.all(bad.map(scoreOf))).toEqual(bad.map(() => null));
  });
});
