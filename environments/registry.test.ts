import { expect, test } from "vitest";
import calculator from "./calculator/package.json" with { type: "json" };
import gridWalk from "./grid-walk/package.json" with { type: "json" };
import gsm8k from "./gsm8k/package.json" with { type: "json" };
import guessNumber from "./guess-number/package.json" with { type: "json" };
import { ENVIRONMENTS } from "./registry.ts";
import reverseText from "./reverse-text/package.json" with { type: "json" };

test("the registry lists each package under its own name and version, in order of name", () => {
  const packages = [calculator, gridWalk, gsm8k, guessNumber, reverseText];
  expect(ENVIRONMENTS.map(({ id, version }) => ({ id, version }))).toEqual(
    packages.map(({ name, version }) => ({ id: name, version })),
  );
});

test("every listed environment loads with its default arguments", async () => {
  for (const { load, needs } of ENVIRONMENTS) {
    const environment = await load(undefined);
    expect(environment.needs).toEqual(needs);
    expect(environment.rubric.judges).toEqual([]);
  }
});
