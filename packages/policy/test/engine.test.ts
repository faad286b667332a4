import { beforeEach, expect, test } from "vitest";
import { Engine } from "../engine.ts";
import type { Generation } from "../generation.ts";
import { END } from "../tokenizer.ts";
import { requestFor } from "./generation-request.ts";
import { randomWeights, weightsThatSay } from "./scripted-weights.ts";

const weights = randomWeights(5);
const prompt = [2, 40, 50, 60, 5, 3];
let engine = new Engine({ weights, version: "0", seed: 1, maxRunning: 16 });
beforeEach(() => {
  engine = new Engine({ weights, version: "0", seed: 1, maxRunning: 16 });
});

const idsOf = ({ tokens }: Generation) => tokens.map(({ id }) => id);

/** Prompts of many lengths, some with a common beginning. */
function otherPrompt(index: number): number[] {
  return [...prompt.slice(0, index % 6), ...Array.from({ length: 1 + (index % 40) }, (_, at) => (at * index) % 240)];
}

test("a seed gives the same tokens and log probabilities alone and among 200 others", async () => {
  const alone = await engine.generate(requestFor(prompt, { seed: 7, maxTokens: 40 }));
  const crowd = new Engine({ weights, version: "0", seed: 2 });
  const others = Array.from({ length: 200 }, (_, index) =>
    crowd.generate(requestFor(otherPrompt(index), { seed: index, maxTokens: 1 + (index % 50) })),
  );
  const among = crowd.generate(requestFor(prompt, { seed: 7, maxTokens: 40 }));
  expect((await among).tokens).toEqual(alone.tokens);
  expect(await Promise.all(others)).toHaveLength(200);
});

test("another seed gives other tokens, and without a seed they differ each time but are the same per engine", async () => {
  const sample = async (from: Engine, seed: number | null) =>
    idsOf(await from.generate(requestFor(prompt, { seed, maxTokens: 20 })));
  expect(await sample(engine, 1)).not.toEqual(await sample(engine, 2));
  const unseeded = [await sample(engine, null), await sample(engine, null)];
  expect(unseeded[0]).not.toEqual(unseeded[1]);
  const secondInstance = new Engine({ weights, version: "0", seed: 1 });
  await sample(secondInstance, 1);
  await sample(secondInstance, 2);
  expect([await sample(secondInstance, null), await sample(secondInstance, null)]).toEqual(unseeded);
});

test("the next turn reads the turn before from the cache, and gives the same result without the cache", async () => {
  const first = await engine.generate(requestFor(prompt));
  const next = [...prompt, ...idsOf(first), 4, 70, 5, 3];
  const cached = await engine.generate(requestFor(next));
  const uncached = await engine.generate(requestFor(next, { cacheSalt: "another" }));
  expect(cached.cachedTokens).toBe(prompt.length + first.tokens.length - 1);
  expect(uncached.cachedTokens).toBe(0);
  expect(cached.tokens).toEqual(uncached.tokens);
});

test("more requests than may run at once wait, and each gets its own tokens", async () => {
  const requests = Array.from({ length: 1000 }, (_, index) =>
    requestFor(otherPrompt(index), { seed: index, maxTokens: 1 + (index % 5) }),
  );
  const answers = Promise.all(requests.map((request) => engine.generate(request)));
  expect(engine.stats()).toMatchObject({ running: 0, waiting: 1000 });
  const generations = await answers;
  expect(generations.map(({ tokens }) => tokens.length)).toEqual(requests.map(({ maxTokens }) => maxTokens));
  const [sample = 0, request = requestFor(prompt)] = [777, requests[777]];
  expect((await engine.generate({ ...request, cacheSalt: "fresh" })).tokens).toEqual(generations[sample]?.tokens);
  expect(engine.stats()).toMatchObject({
    running: 0,
    waiting: 0,
    requests: 1001,
    promptTokens: requests.reduce((sum, each) => sum + each.prompt.length, request.prompt.length),
    generationTokens: requests.reduce((sum, each) => sum + each.maxTokens, request.maxTokens),
    kvUsage: 0,
  });
});

test("the event loop runs between two steps", async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    if (engine.stats().running > 0 || turns === 1) setImmediate(count);
  };
  setImmediate(count);
  await engine.generate(requestFor(prompt, { maxTokens: 50 }));
  expect(turns).toBeGreaterThanOrEqual(50);
});

test("a prompt that leaves no space for tokens is refused with the numbers", async () => {
  const long = Array.from({ length: 100 }, () => 40);
  await expect(engine.generate(requestFor(long, { maxTokens: 13 }))).rejects.toThrow(
    new RangeError(
      "the context is 112 tokens, but the prompt has 100 and 13 more were asked for: " +
        "shorten the messages or ask for fewer tokens",
    ),
  );
  expect((await engine.generate(requestFor(long, { maxTokens: 12 }))).tokens).toHaveLength(12);
});

test.each([
  ["an empty prompt", requestFor([])],
  ["an id beyond the vocabulary", requestFor([240])],
  ["half an id", requestFor([1.5])],
  ["no tokens to make", requestFor(prompt, { maxTokens: 0 })],
])("%s is refused", async (_, request) => {
  await expect(engine.generate(request)).rejects.toBeInstanceOf(RangeError);
});

test("the end token ends a generation, unless it is ignored or comes too early", async () => {
  const scripted = weightsThatSay([{ after: 3, ids: [40, END, 50, 60, 70] }]);
  const speaker = new Engine({ weights: scripted, version: "0" });
  const say = (fields: Parameters<typeof requestFor>[1]) =>
    speaker.generate(requestFor([2, 30, 3], { ignoreEos: false, maxTokens: 5, ...fields }));
  const ended = await say({});
  expect(ended).toMatchObject({ finishReason: "stop", stopToken: null });
  expect(idsOf(ended)).toEqual([40, END]);
  const ignored = await say({ ignoreEos: true });
  expect(ignored).toMatchObject({ finishReason: "length" });
  expect(idsOf(ignored)).toEqual([40, END, 50, 60, 70]);
  const later = await say({ minTokens: 2, temperature: 0 });
  expect(idsOf(later)[1]).not.toBe(END);
  expect(later.tokens).toHaveLength(5);
  const stopped = await say({ ignoreEos: true, stopTokenIds: [60] });
  expect(stopped).toMatchObject({ finishReason: "stop", stopToken: 60 });
  expect(idsOf(stopped)).toEqual([40, END, 50, 60]);
});

test("a listener gets each token and may end the generation", async () => {
  const heard: number[] = [];
  const generation = await engine.generate(
    requestFor(prompt, { maxTokens: 20, onToken: ({ id }) => heard.push(id) === 3 }),
  );
  expect(generation.finishReason).toBe("stop");
  expect(idsOf(generation)).toEqual(heard);
  expect(heard).toHaveLength(3);
});

test("an error of a listener fails its own request and no other", async () => {
  const failing = engine.generate(
    requestFor(prompt, {
      onToken: () => {
        throw new Error("the listener is broken");
      },
    }),
  );
  const other = engine.generate(requestFor(prompt));
  await expect(failing).rejects.toThrow("the listener is broken");
  expect((await other).tokens).toHaveLength(8);
  expect(engine.stats()).toMatchObject({ running: 0, kvUsage: 0 });
});

test("an aborted request ends with the tokens it has, whether it waits or runs", async () => {
  const control = new AbortController();
  const running = engine.generate(
    requestFor(prompt, {
      maxTokens: 50,
      signal: control.signal,
      onToken: () => {
        control.abort();
        return false;
      },
    }),
  );
  const ended = await running;
  expect(ended.finishReason).toBe("abort");
  expect(ended.tokens).toHaveLength(1);
  const never = await engine.generate(requestFor(prompt, { signal: AbortSignal.abort() }));
  expect(never).toMatchObject({ finishReason: "abort", tokens: [] });
  expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, requests: 2 });
});

test("a stopped engine ends all requests and accepts no more", async () => {
  const pending = Array.from({ length: 20 }, () => engine.generate(requestFor(prompt)));
  engine.stop();
  for (const generation of await Promise.all(pending)) {
    expect(generation.finishReason).toBe("abort");
  }
  await expect(engine.generate(requestFor(prompt))).rejects.toThrow("stopped");
});

test("an engine that a listener stops settles each request once", async () => {
  const generations = await Promise.all([
    engine.generate(requestFor(prompt, { onToken: () => engine.stop() === undefined })),
    engine.generate(requestFor(prompt)),
  ]);
  expect(generations.map(({ finishReason }) => finishReason)).toEqual(["abort", "abort"]);
  expect(engine.stats()).toMatchObject({ running: 0, requests: 2 });
});

test("the tokens of a step belong to the weights it began with, even if a listener changes them", async () => {
  const [changing, other] = await Promise.all([
    engine.generate(
      requestFor(prompt, {
        onToken: () => {
          void engine.updateWeights(weights, "1");
          return true;
        },
      }),
    ),
    engine.generate(requestFor(prompt, { maxTokens: 1 })),
  ]);
  expect(changing.weightVersions).toEqual({ first: "0", last: "0" });
  expect(other.weightVersions).toEqual({ first: "0", last: "0" });
});

test("new weights are used from the next step on: running requests continue, cached entries are dropped", async () => {
  const first = await engine.generate(requestFor(prompt, { maxTokens: 20 }));
  let updated: Promise<void> | null = null;
  const across = await engine.generate(
    requestFor(prompt, {
      maxTokens: 20,
      onToken: () => {
        updated ??= engine.updateWeights(randomWeights(6), "1");
        return false;
      },
    }),
  );
  await updated;
  expect(across.weightVersions).toEqual({ first: "0", last: "1" });
  expect(across.tokens[0]).toEqual(first.tokens[0]);
  expect(idsOf(across)).not.toEqual(idsOf(first));
  const after = await engine.generate(requestFor([...prompt, ...idsOf(across)]));
  expect(after).toMatchObject({ cachedTokens: 0, weightVersions: { first: "1", last: "1" } });
  expect(engine.weightVersion).toBe("1");
});

test("weights that are too few or not finite are refused and change nothing", async () => {
  const before = await engine.generate(requestFor(prompt));
  await expect(engine.updateWeights(new Float32Array(3), "1")).rejects.toThrow("but 3 were given");
  const broken = weights.slice();
  broken[100] = Number.NaN;
  await expect(engine.updateWeights(broken, "1")).rejects.toThrow("finite");
  expect((await engine.generate(requestFor(prompt))).tokens).toEqual(before.tokens);
  expect(engine.weightVersion).toBe("0");
});
