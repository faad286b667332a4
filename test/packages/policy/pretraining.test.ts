import { expect, test } from "vitest";
import { tokenText } from "../../../packages/policy/tokenizer.ts";
import { POLICY } from "../../../packages/policy/weights.ts";
import { demonstrate } from "../../../scripts/pretrain/demonstrations.ts";
import { initialize } from "../../../scripts/pretrain/initialize.ts";
import { loadFields } from "../../../scripts/pretrain/playing-field.ts";
import { Imitation } from "../../../scripts/pretrain/train.ts";
import { createTrainee } from "../../../scripts/pretrain/trainee.ts";
import { seededRandom } from "../../../src/contract/random.ts";

const fields = await loadFields();
const lessons = (count: number) => Promise.all(fields.map((field) => demonstrate(field, count)));

test("demonstrations are the same each time, and fit the context", async () => {
  const [once, again] = [await lessons(20), await lessons(20)];
  expect(again).toEqual(once);
  for (const { ids, weights } of once.flat()) {
    expect(ids.length).toBeLessThanOrEqual(POLICY.context);
    expect(weights).toHaveLength(ids.length);
  }
});

test("what the assistant says is what is learned, its end included", async () => {
  const [calculator = []] = await lessons(20);
  for (const { ids, weights } of calculator) {
    const heard = ids.filter((_, at) => weights[at] !== 1).map(tokenText);
    const said = ids.filter((_, at) => weights[at] === 1).map(tokenText);
    expect(heard.join("")).toMatch(/^<\|user\|>What is \d [-+*] \d\?<\|end\|><\|assistant\|>/);
    expect(said.join("")).toMatch(/^(<tool_call>\{"name": "[a-z]+".*<\|end\|>)?-?\d+<\|end\|>$/);
  }
});

test("a few steps lower the loss, each time alike to the last bit", async () => {
  const [examples = []] = await lessons(8);
  const small = { ...POLICY, width: 16, heads: 2, hidden: 32 };
  const losses = () => {
    const trainee = createTrainee(small, 8 * POLICY.context);
    initialize(small, trainee.parameters, seededRandom("test"));
    const imitation = new Imitation(trainee, 60);
    return Array.from({ length: 60 }, () => imitation.step(examples));
  };
  const once = losses();
  expect(once.at(-1)).toBeLessThan(0.9 * (once[0] ?? 0));
  expect(losses()).toEqual(once);
});
