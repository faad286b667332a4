import { expect, test } from "vitest";
import calculator from "./calculator/package.json" with { type: "json" };
import gsm8k from "./gsm8k/package.json" with { type: "json" };
import guessNumber from "./guess-number/package.json" with { type: "json" };
import { ENVIRONMENTS } from "./registry.ts";

test("the registry lists each package under its own name and version, in order of name", () => {
  const packages = [calculator, gsm8k, guessNumber];
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
