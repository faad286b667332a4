/** Trainings of the calculator against a model whose skill depends on the trained step, for tests of their pages. */
import { textOf } from "../../src/contract/messages.ts";
import type { RollcallClient } from "../../src/sdk/client.ts";
import { type Answer, type ModelRequest, startScriptedModel } from "../fakes/scripted-model.ts";
import { ScriptedTrainer } from "../fakes/scripted-trainer.ts";

export interface Skill {
  /** Out of ten rollouts, how many are right. */
  readonly right: number;
  /** Whether wrong rollouts call a tool with arguments that it refuses. */
  readonly misuses?: boolean;
}

/** Plays a training to its end: step n is sampled with `skills[n - 1]`. Returns the run's id. */
export async function playTraining(
  client: RollcallClient,
  url: string,
  name: string,
  skills: readonly Skill[],
): Promise<string> {
  let trained = 0;
  const asked = new Map<number, number>();
  const model = await startScriptedModel({
    reply: (request) => {
      const first = request.messages.every(({ role }) => role !== "tool");
      const nth = asked.get(trained) ?? 0;
      if (first) asked.set(trained, nth + 1);
      return replyOf(request, skills[trained] ?? { right: 0 }, nth);
    },
  });
  try {
    const { id, trainer } = await client.runs.create({
      kind: "training",
      ...{ name, environment: "calculator", environment_args: { steps: 1, max: 9 } },
      ...{ model: "m", endpoint: { base_url: model.url }, group_size: 4, batch_size: { rollouts: 20 } },
      ...{ max_steps: skills.length, lead: 0, max_off_policy_steps: 0, filters: { zero_variance: "keep" as const } },
    });
    const train = async () => {
      trained += 1;
    };
    await new ScriptedTrainer({ url, run: id, token: trainer?.token ?? "", train }).work();
    for await (const _ of client.runs.events(id));
    return id;
  } finally {
    await model.stop();
  }
}

function replyOf({ messages }: ModelRequest, { right, misuses = false }: Skill, nth: number): Answer {
  const question = textOf(messages.find(({ role }) => role === "user"));
  const [, a = "0", operator = "+", b = "0"] = /(\d+) ([-+*]) (\d+)/.exec(question) ?? [];
  const result = { "+": Number(a) + Number(b), "-": Number(a) - Number(b), "*": Number(a) * Number(b) }[operator];
  const ids = { prompt_token_ids: [...messages.keys()], token_ids: [messages.length], logprobs: [-0.1] };
  const hasCalled = messages.some(({ role }) => role === "tool");
  // Every tenth rollout in turn, so that each step has the same share.
  const isRight = !hasCalled && (nth * 7) % 10 < right;
  if (isRight) return { ...ids, content: `It is ${result}.` };
  if (misuses && !hasCalled) return { ...ids, tool_calls: [{ name: "multiply", arguments: { a: "two", b: 3 } }] };
  return { ...ids, content: "I do not know." };
}
