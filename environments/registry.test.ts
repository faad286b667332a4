import { expect, test } from "vitest";
import { ENVIRONMENTS } from "./registered.ts";

test("every listed environment loads with its default arguments, if it needs no others", async () => {
  for (const { load, needs, args } of ENVIRONMENTS) {
    if (!args.safeParse({}).success) continue;
    const environment = await load(undefined);
    expect(environment.needs).toEqual(needs);
  }
});
