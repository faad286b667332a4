import { tokenText } from "@rollcall/policy/tokenizer";
import { POLICY } from "@rollcall/policy/weights";
import { startJax } from "@rollcall/trainer/gradient";
import { expect, test } from "vitest";
import { demonstrate } from "../../../scripts/pretrain/demonstrations.ts";
import { Imitation } from "../../../scripts/pretrain/imitate.ts";
import { loadFields } from "../../../scripts/pretrain/playing-field.ts";
import { seededRandom } from "../../../src/contract/random.ts";

const STEPS = 15;
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

test("the assistant's tokens are learned, including the end token", async () => {
  const [calculator = []] = await lessons(20);
  for (const { ids, weights } of calculator) {
    const heard = ids.filter((_, at) => weights[at] !== 1).map(tokenText);
    const said = ids.filter((_, at) => weights[at] === 1).map(tokenText);
    expect(heard.join("")).toMatch(/^<\|user\|>What is \d [-+*] \d\?<\|end\|><\|assistant\|>/);
    expect(said.join("")).toMatch(/^(<tool_call>\{"name": "[a-z]+".*<\|end\|>)?-?\d+<\|end\|>$/);
  }
});

test("a few steps lower the loss, identically to the last bit each time", async () => {
  const [examples = []] = await lessons(8);
  await startJax();
  const losses = async () => {
    const imitation = new Imitation(STEPS, seededRandom("test"));
    const all: number[] = [];
    while (all.length < STEPS) all.push(await imitation.step(examples));
    return all;
  };
  const once = await losses();
  expect(once.at(-1)).toBeLessThan(0.9 * (once[0] ?? 0));
  expect(await losses()).toEqual(once);
});
