import { expect, test } from "vitest";
import * as z from "zod";
import { dataset, defineEnvironment, SingleTurnEnv } from "../../../src/core/entry.ts";
import { addressesNeeded, gateForScoring } from "../../../src/core/environments/capabilities.ts";
import type { FetchOptions, Need } from "../../../src/core/environments/contract.ts";

const URL_OF_OURS = "https://scorer.example/score";

function gated(...needs: Need[]) {
  const sent: [string, FetchOptions | undefined][] = [];
  const fetch = async (url: string, init?: FetchOptions) => {
    sent.push([url, init]);
    return { status: 200, headers: new Map(), text: async () => "" };
  };
  return { sent, can: gateForScoring(needs, { fetch, now: () => 0 }) };
}

test("a need with an address opens only that address", async () => {
  const { sent, can } = gated(`fetch:${URL_OF_OURS}`);
  await can.fetch(URL_OF_OURS);
  await expect(can.fetch(`${URL_OF_OURS}/more`)).rejects.toThrow(
    'not declared: add "fetch:https://scorer.example/score/more" to needs',
  );
  expect(sent.map(([url]) => url)).toEqual([URL_OF_OURS]);
  expect(addressesNeeded(["sql", `fetch:${URL_OF_OURS}`])).toEqual([URL_OF_OURS]);
});

test("a request is signed only with a declared secret, and scoring without a need cannot reach any address", async () => {
  const sign = { secret: "KEY", id: "1" };
  await expect(gated("fetch").can.fetch(URL_OF_OURS, { sign })).rejects.toThrow("secret:KEY");
  const { sent, can } = gated("fetch", "secret:KEY");
  await can.fetch(URL_OF_OURS, { sign });
  expect(sent).toEqual([[URL_OF_OURS, { sign }]]);
  expect(() => gated().can.fetch).toThrow('add "fetch" to needs');
});

test("an environment's needs may depend on its arguments", async () => {
  const load = defineEnvironment({
    args: z.strictObject({ url: z.string() }),
    needs: ({ url }) => [`fetch:${url}`],
    build: () => {
      const rows = dataset(z.object({ question: z.string() }), [{ question: "?" }]);
      return new SingleTurnEnv({ dataset: rows, rubric: { rewards: { one: () => 1 } } });
    },
  });
  expect(load.needs).toEqual([]);
  expect((await load({ url: URL_OF_OURS })).needs).toEqual([`fetch:${URL_OF_OURS}`]);
});
