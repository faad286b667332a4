/**
 * An environment that attacks the platform: its question is the name of the attack. It replaces `JSON.stringify`, and so
 * determines what crosses to the platform.
 */
import { dataset, defineEnvironment, MultiTurnEnv } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string() });

interface Lying {
  readonly event?: { readonly type: string; readonly state?: { readonly attack?: string } };
  readonly records?: readonly { readonly rollout_id: string }[];
  readonly row?: { readonly question?: string };
  readonly players?: unknown;
}

const event = (fields: object) => honest([{ event: fields, tools: null }]);
const honest = JSON.stringify;
const error = { error: "EnvError", message: "no", error_chain_str: "no", error_chain_repr: "no", retryable: false };
const setUp = (state: string) => `[{"event":{"type":"set_up","state":${state}},"tools":null}]`;
const tool = { type: "function", function: { name: "t", description: "", parameters: {} } };

/** What crosses instead of the events of the setup. */
const EVENTS: Readonly<Record<string, () => unknown>> = {
  "no events": () => "[]",
  "events without end": () => `[${Array(100_000).fill('{"event":{"type":"timed_out"},"tools":null}').join()}]`,
  "an object": () => ({ toString: () => "[]" }),
  "a function": () => () => "[]",
  "a map": () => new Map([["event", new Date()]]),
  "a bigint": () => 1n,
  "a cycle": () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    return cycle;
  },
  "no JSON": () => "[{",
  "100 MB": () => "x".repeat(100_000_000),
  "20 MB": () => setUp(honest({ text: "x".repeat(20_000_000) })),
  "a state of 1 MB": () => setUp(honest({ text: "x".repeat(1_000_000) })),
  "a million values": () => setUp(`{"list":[${Array(1_000_000).fill("0").join()}]}`),
  "ten thousand levels": () => setUp(`{"deep":${"[".repeat(10_000)}${"]".repeat(10_000)}}`),
  "an infinite number": () => setUp('{"number":1e999}'),
  "a prototype": () => setUp('{"\\u005f_proto__":{"polluted":true}}'),
  "a million tools": () => honest([{ event: { type: "set_up", state: {} }, tools: Array(20_000).fill(tool) }]),
  "a tool that is none": () => honest([{ event: { type: "set_up", state: {} }, tools: [{ type: "nothing" }] }]),
  "an event of the platform": () => event({ type: "cancelled", reason: "user" }),
  "an event out of order": () => event({ type: "closed", state: {}, error: null, cleanup_errors: [] }),
  "an error of 5 MB": () => event({ type: "failed", error: { ...error, message: "x".repeat(5_000_000) } }),
  "messages that are none": () => {
    const said = {
      type: "replied",
      prompt: { keep: 0, append: [{ role: "god" }] },
      state: {},
      final_env_response: null,
    };
    return honest([
      { event: { type: "set_up", state: {} }, tools: null },
      { event: said, tools: null },
    ]);
  },
};

/** What crosses instead of the scores. */
const SCORES: Readonly<Record<string, (id: string) => unknown>> = {
  "a reward that is NaN": (id) => scores(id, '"reward":NaN,"unscored":null,"scores":[]'),
  "a reward that is infinite": (id) => scores(id, '"reward":1e999,"unscored":null,"scores":[]'),
  "a reward that is a text": (id) => scores(id, '"reward":"1","unscored":null,"scores":[]'),
  "no reward and no reason": (id) => scores(id, '"reward":null,"unscored":null,"scores":[]'),
  "a score of another name": (id) =>
    scores(id, '"reward":1,"unscored":null,"scores":[{"name":"other","score":1,"weight":1}]'),
  "a score twice": (id) => {
    const one = '{"name":"right","score":1,"weight":1}';
    return scores(id, `"reward":1,"unscored":null,"scores":[${one},${one}]`);
  },
  "the score of another rollout": () => scores("ro_other", '"reward":1,"unscored":null,"scores":[]'),
  "no record": () => '{"records":[],"pending":[],"steps":0}',
  "work below zero": (id) => scores(id, '"reward":1,"unscored":null,"scores":[]', -1),
  "credits of turns that are none": (id) =>
    scores(id, `"reward":1,"unscored":null,"scores":[],"steps":[${Array(50_000).fill('{"reward":1,"advantage":1}')}]`),
  "a question to no judge": (id) => {
    const ask = { key: "k", rollout_id: id, judge: "default", messages: [], menu: { kind: "text" }, sampling: {} };
    const pending = honest([{ ...ask, pass: 0, left_out: 0, seed: null }]);
    return scores(id, '"reward":1,"unscored":null,"scores":[]', 0, pending);
  },
};

function scores(id: string, fields: string, steps = 0, pending = "[]"): string {
  const record = `{"rollout_id":${honest(id)},"scoring_errors":[],${fields}}`;
  return `{"records":[${record}],"pending":${pending},"steps":${steps}}`;
}

/** By rollout. */
const scored = new Map<string, string>();

JSON.stringify = ((value: unknown, ...more: []) => {
  const list: readonly Lying[] = Array.isArray(value) ? value : [];
  const attack = list[0]?.event?.type === "set_up" ? list[0].event.state?.attack : undefined;
  const lie = EVENTS[attack ?? ""];
  if (lie !== undefined) return lie();
  const { records = [], row } = (value ?? {}) as Lying;
  const id = records[0]?.rollout_id ?? "";
  const score = SCORES[scored.get(id) ?? ""];
  if (score !== undefined) return score(id);
  if (row?.question === "a task of 100 MB") return "x".repeat(100_000_000);
  if (row?.question === "a task that is none") return '{"row":{},"task":null,"member":null}';
  return honest(value, ...more);
}) as typeof JSON.stringify;

const recurse = (): number => 1 + recurse();

async function attackBy(attack: string): Promise<void> {
  if (attack === "recursion") recurse();
  if (attack === "a promise that never settles") await new Promise(() => undefined);
  if (attack === "a timer after the end") setTimeout(() => recurse(), 0);
  if (attack === "a rejection that nobody handles") void Promise.reject(new Error("nobody"));
  if (attack === "an error that looks like the platform's") throw new Error("Network connection lost.");
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new MultiTurnEnv({
      dataset: dataset(Task, "uploaded"),
      maxTurns: 1,
      setupState: async ({ task }) => {
        await attackBy(task.question);
        return { attack: task.question };
      },
      envResponse: () => "Go on.",
      rubric: {
        rewards: {
          right: ({ task, rollout_id }) => {
            scored.set(rollout_id, task.question);
            if (task.question === "recursion while scoring") return recurse();
            return 1;
          },
        },
      },
    }),
});
