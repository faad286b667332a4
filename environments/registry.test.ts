import { expect, test } from "vitest";
import { ENVIRONMENTS } from "./registered.ts";

test("every listed environment loads with its default arguments, where it can do without any", async () => {
  for (const { load, needs, args } of ENVIRONMENTS) {
    if (!args.safeParse({}).success) continue;
    const environment = await load(undefined);
    expect(environment.needs).toEqual(needs);
  }
});
