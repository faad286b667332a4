import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { serializeError } from "../../../src/contract/errors.ts";
import { samplesOf, type VersionSpan } from "../../../src/core/training/samples.ts";
import type { SamplingFacts } from "../../../src/core/training/trainable.ts";
import { DISPATCHED, FIRST, GOES_ON, rollout, type Sampled, stored } from "./sampled-turns.ts";

type Facts = Omit<Partial<SamplingFacts>, "dispatch_version">;
const of = (turns: readonly Sampled[], facts: Facts = {}) =>
  samplesOf(rollout(stored(turns)), { ...DISPATCHED, ...facts });
const plain = (turns: readonly Sampled[], facts: Facts = {}) =>
  of(turns, facts).samples.map(({ token_ids, mask, logprobs, ...rest }) => ({
    token_ids: [...token_ids],
    mask: [...mask],
    logprobs: [...logprobs],
    ...rest,
  }));

const BREAKS: Sampled = { ...GOES_ON, prompt: [10, 11, 12, 20, 99, 30] };

test("a prompt that continues the previous ids makes one sample, with a span for each turn", () => {
  expect(plain([FIRST, GOES_ON])).toEqual([
    {
      token_ids: [10, 11, 12, 20, 21, 30, 22],
      mask: [0, 0, 0, 1, 1, 0, 1],
      logprobs: [0, 0, 0, -0.5, -0.25, 0, -1],
      weight_versions: [
        { version: 3, start: 3, end: 5 },
        { version: 4, start: 6, end: 7 },
      ],
      policy_version_start: 3,
      policy_version_end: 4,
      trainable_tokens: 3,
    },
  ]);
  expect(of([FIRST, GOES_ON])).toMatchObject({
    untrainable: null,
    transitions: { clean: 1, forked: 0, realigned: 0 },
    lengths: { output: 3, total: 7, turns: 2 },
  });
});

test("a prompt that differs from the previous ids begins a sample, in which only its own answer trains", () => {
  const [first, second] = plain([FIRST, BREAKS]);
  expect(first).toMatchObject({ token_ids: [10, 11, 12, 20, 21], mask: [0, 0, 0, 1, 1] });
  expect(second).toMatchObject({
    token_ids: [10, 11, 12, 20, 99, 30, 22],
    mask: [0, 0, 0, 0, 0, 0, 1],
    weight_versions: [{ version: 4, start: 6, end: 7 }],
  });
  expect(of([FIRST, BREAKS])).toMatchObject({
    transitions: { clean: 0, forked: 1, realigned: 0 },
    lengths: { output: 3, total: 12, turns: 2 },
  });
});

test("it makes no difference to the samples as a suffix of which earlier turn the ids are stored", () => {
  const id = fc.integer({ min: 1, max: 3 });
  // Each turn continues an earlier one, or one without its last ids, or none.
  const turn = fc.record({
    base: fc.nat(),
    cut: fc.integer({ min: 0, max: 2 }),
    more: fc.array(id, { minLength: 1, maxLength: 3 }),
    answer: fc.array(id, { minLength: 1, maxLength: 3 }),
  });
  const threshold = fc.constantFrom(0, 2, 1024);
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 12 }), threshold, (planned, fork_threshold_tokens) => {
      const turns: Sampled[] = [];
      for (const [index, { base, cut, more, answer }] of planned.entries()) {
        const after = index === 0 ? undefined : base % index;
        const from = turns[after ?? -1];
        const ids = from === undefined ? [] : [...from.prompt, ...from.answer];
        turns.push({ prompt: [...ids.slice(0, ids.length - cut), ...more], answer, after });
      }
      const facts = { fork_threshold_tokens };
      expect(of(turns, facts)).toEqual(
        of(
          turns.map(({ after: _, ...rest }) => rest),
          facts,
        ),
      );
    }),
  );
});

test("a turn that is excluded from training is in no sample, and the others are as without it", () => {
  const judge: Sampled = { prompt: [10, 11, 12, 20, 21, 40], answer: [41, 42], after: 0, train: false };
  const back: Sampled = { ...GOES_ON, after: 0 };
  const made = of([FIRST, judge, back]);
  expect(made).toEqual(of([FIRST, GOES_ON]));
  expect(made.lengths).toEqual({ output: 3, total: 7, turns: 2 });
  expect(of([{ ...judge, after: undefined }, { ...FIRST }])).toMatchObject({ transitions: { clean: 0, forked: 0 } });
});

test("the answer of an excluded turn is context of the turns that continue it", () => {
  const judge: Sampled = { prompt: [10, 11, 12, 20, 21, 40], answer: [41, 42], train: false };
  const on: Sampled = { prompt: [10, 11, 12, 20, 21, 40, 41, 42, 50], answer: [51] };
  expect(plain([FIRST, judge, on])).toMatchObject([
    { token_ids: [10, 11, 12, 20, 21, 40, 41, 42, 50, 51], mask: [0, 0, 0, 1, 1, 0, 0, 0, 0, 1] },
  ]);
  expect(plain([judge, { ...on }])).toMatchObject([{ mask: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1] }]);
});

test("an excluded turn may lack ids, logprobs or a version, and alone it trains nothing", () => {
  const facts = { newest_version: 3 };
  const excluded = { ...GOES_ON, logprobs: null, version: "99", train: false };
  expect(of([FIRST, excluded], facts)).toEqual(of([FIRST], facts));
  expect(of([excluded])).toMatchObject({ samples: [], untrainable: "empty", lengths: { output: 0, turns: 0 } });
  const [first, second, third] = stored([FIRST, { ...excluded, prompt: [] }, { ...BREAKS, version: "3" }]);
  if (first === undefined || second === undefined || third === undefined) throw new Error("three turns were given");
  const without = { ...second, tokens: null };
  const { samples } = samplesOf(rollout([first, without, third]), DISPATCHED);
  expect(samples.map(({ trainable_tokens }) => trainable_tokens)).toEqual([2, 1]);
});

test("with realignment, a difference within the last answer becomes context of the same sample", () => {
  const threshold = { fork_threshold_tokens: 1024 };
  expect(plain([FIRST, BREAKS], threshold)).toEqual([
    {
      token_ids: [10, 11, 12, 20, 99, 30, 22],
      mask: [0, 0, 0, 1, 0, 0, 1],
      logprobs: [0, 0, 0, -0.5, 0, 0, -1],
      weight_versions: [
        { version: 3, start: 3, end: 4 },
        { version: 4, start: 6, end: 7 },
      ],
      policy_version_start: 3,
      policy_version_end: 4,
      trainable_tokens: 2,
    },
  ]);
  expect(of([FIRST, BREAKS], threshold)).toMatchObject({
    transitions: { clean: 0, forked: 0, realigned: 1 },
    drift_tokens: 1,
  });
});

test("with realignment, an earlier or a longer difference still begins a new sample", () => {
  const early = { ...GOES_ON, prompt: [10, 99, 12, 20, 21, 30] };
  expect(of([FIRST, early], { fork_threshold_tokens: 1024 }).transitions.forked).toBe(1);
  const two = { ...GOES_ON, prompt: [10, 11, 12, 98, 99, 30] };
  expect(of([FIRST, two], { fork_threshold_tokens: 2 }).transitions.forked).toBe(1);
  expect(of([FIRST, two], { fork_threshold_tokens: 3 }).transitions.realigned).toBe(1);
});

test("agents that alternate have one sample each", () => {
  const a = { prompt: [1, 2], answer: [3] };
  const again = { prompt: [1, 2, 3, 4], answer: [5] };
  const b = { prompt: [9, 8], answer: [7] };
  const last = { prompt: [1, 2, 3, 4, 5, 6], answer: [11] };
  const samples = plain([a, again, b, last]);
  expect(samples.map(({ token_ids }) => token_ids)).toEqual([
    [1, 2, 3, 4, 5, 6, 11],
    [9, 8, 7],
  ]);
  expect(of([a, again, b, last]).transitions).toEqual({ clean: 2, forked: 1, realigned: 0 });
});

test("if a turn can continue several samples, it continues the longest", () => {
  const long = { prompt: [1, 2, 3], answer: [4] };
  const short = { prompt: [1], answer: [2] };
  const next = { prompt: [1, 2, 3, 4, 5], answer: [6] };
  expect(plain([long, short, next]).map(({ token_ids }) => token_ids)).toEqual([
    [1, 2, 3, 4, 5, 6],
    [1, 2],
  ]);
});

test("a turn's version is the engine's label if that is a number, else the version it was dispatched with", () => {
  const labelled = (version: string | null) => plain([{ ...FIRST, version }])[0];
  expect(labelled("7")).toMatchObject({ policy_version_start: 3, policy_version_end: 7 });
  expect(labelled("default")).toMatchObject({ policy_version_start: 3, policy_version_end: 3 });
  expect(labelled(null)?.weight_versions).toEqual([{ version: 3, start: 3, end: 5 }]);
  // The engine came back with older weights.
  expect(labelled("1")).toMatchObject({ policy_version_start: 1, policy_version_end: 1 });
  const [turn] = stored([{ ...FIRST, version: null }]);
  const turns = turn === undefined ? [] : [{ ...turn, dispatch_version: 5 }];
  const [sample] = samplesOf({ turns, error: null, cancelled: null }, DISPATCHED).samples;
  expect(sample?.weight_versions[0]?.version).toBe(5);
});

test("on a fleet the fleet determines a turn's version; it is unknown if the fleet does not know it or the engine reports another", () => {
  const silent: Sampled[] = [FIRST, GOES_ON].map((turn) => ({ ...turn, version: null }));
  const stamped = (versions: readonly (number | null)[], turns = silent) =>
    of(turns, { stamped: versions, newest_version: 7 });
  const [sample] = stamped([5, 6]).samples;
  expect(sample?.weight_versions.map(({ version }) => version)).toEqual([5, 6]);
  expect([stamped([5, null]), stamped([5])].map(({ untrainable }) => untrainable)).toEqual([
    "unknown_version",
    "unknown_version",
  ]);
  expect(stamped([5, 8]).untrainable).toBe("unpublished_version");
  // The time of the sampling is unknown, whatever engines served.
  const served = [{ at: 0, version: 4, newest: 4, taken_back: 0 as const }];
  expect(of(silent, { stamped: [null, null], served }).untrainable).toBe("unknown_version");
  const labelled = silent.map((turn) => ({ ...turn, version: "4" }));
  expect(stamped([4, 4], labelled).untrainable).toBeNull();
  expect(stamped([4, 5], labelled).untrainable).toBe("unknown_version");
});

test("a label that cannot be a published version makes the rollout untrainable, and is in no sample", () => {
  const cause = (version: string, newest_version = 4) =>
    of([FIRST, { ...GOES_ON, version }], { newest_version }).untrainable;
  expect([cause("4"), cause("0"), cause(" 2 "), cause("4", 4)]).toEqual([null, null, null, null]);
  const foreign = ["5", "-1", "1.5", "1e3", "1795302000", "9".repeat(30), "NaN", "-Infinity", "0x2"];
  for (const label of foreign) expect([label, cause(label)]).toEqual([label, "unpublished_version"]);
  for (const name of ["base", "step_9", "", "v7", "a1b2c3"]) expect([name, cause(name)]).toEqual([name, null]);
  const [first] = stored([FIRST]);
  const turns = first === undefined ? [] : [{ ...first, first_policy_version: "9" }];
  const begun = samplesOf(rollout(turns), { ...DISPATCHED, newest_version: 4 });
  expect(begun).toMatchObject({ samples: [], untrainable: "unpublished_version" });
});

test("each sample is counted once: the first of a rollout, a new one, or an overwritten one", () => {
  expect(of([FIRST]).branches).toEqual({ clean: 1, forked: 0, realigned: 0 });
  expect(of([FIRST, GOES_ON]).branches).toEqual({ clean: 1, forked: 0, realigned: 0 });
  expect(of([FIRST, BREAKS]).branches).toEqual({ clean: 1, forked: 1, realigned: 0 });
  const overwritten = of([FIRST, BREAKS], { fork_threshold_tokens: 1024 });
  expect(overwritten.branches).toEqual({ clean: 0, forked: 0, realigned: 1 });
  const silent = of([{ ...FIRST, answer: [], logprobs: [] }, BREAKS]);
  expect([silent.samples.length, silent.branches.clean]).toEqual([1, 1]);
  expect(of([{ ...FIRST, logprobs: null }]).branches).toEqual({
    clean: 0,
    forked: 0,
    realigned: 0,
  });
});

test.each([
  ["a missing logprob", { logprobs: [-0.5, -9999] }, "missing_logprob"],
  ["no logprobs", { logprobs: null }, "missing_logprob"],
  ["a logprob too few", { logprobs: [-0.5] }, "length_mismatch"],
  ["a probability above 1", { logprobs: [-0.5, 0.01] }, "positive_logprob"],
  ["a logprob that is no number", { logprobs: [Number.NaN, -1] }, "nonfinite"],
  ["an infinite logprob", { logprobs: [-0.5, Number.NEGATIVE_INFINITY] }, "nonfinite"],
  ["nothing before the answer", { prompt: [] }, "no_tokens"],
  ["nothing sampled", { answer: [], logprobs: [] }, "empty"],
])("%s makes the whole rollout untrainable", (_name, change, cause) => {
  const turns = [{ ...FIRST, ...change }, ...(cause === "empty" ? [] : [GOES_ON])];
  expect(of(turns)).toMatchObject({ samples: [], untrainable: cause });
  expect(of(turns).transitions).toEqual({ clean: 0, forked: 0, realigned: 0 });
});

test("a probability that rounding raises above 1 is accepted", () => {
  expect(of([{ ...FIRST, logprobs: [5e-7, 0] }]).untrainable).toBeNull();
});

test("a rollout without ids or turns, cut to nothing, failed or cancelled has a cause, and its length is the counted usage", () => {
  const turns = stored([FIRST, GOES_ON]);
  const [first] = turns;
  if (first === undefined) throw new Error("there are two turns");
  const without = {
    turns: turns.map((turn) => ({ ...turn, tokens: null })),
    error: null,
    cancelled: null,
  };
  expect(samplesOf(without, DISPATCHED)).toMatchObject({
    untrainable: "no_tokens",
    lengths: { output: 3, total: 7, turns: 2 },
  });
  expect(samplesOf(rollout([]), DISPATCHED).untrainable).toBe("empty");
  const [overlong] = stored([{ prompt: [1, 2, 3], answer: [], logprobs: [] }]);
  const cut = overlong === undefined ? [] : [{ ...overlong, is_truncated: true }];
  expect(samplesOf(rollout(cut), DISPATCHED).untrainable).toBe("tokens_cut");
  const error = serializeError(new Error("gone"));
  expect(samplesOf({ ...rollout(turns), error }, DISPATCHED).untrainable).toBe("errored");
  expect(samplesOf({ ...rollout(turns), cancelled: "stale" }, DISPATCHED).untrainable).toBe("cancelled");
});

/** The positions that its spans cover. */
function covered({ weight_versions }: { weight_versions: readonly VersionSpan[] }): number[] {
  return weight_versions.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, at) => start + at));
}

test("each sampled token trains exactly once, all arrays have the same length, and the first token never trains", () => {
  const id = fc.integer({ min: 1, max: 3 });
  const turn = fc.record({
    prompt: fc.array(id, { minLength: 1, maxLength: 6 }),
    answer: fc.array(id, { maxLength: 3 }),
    goesOn: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(turn, { minLength: 1, maxLength: 8 }), (drawn) => {
      let history: readonly number[] = [];
      let sampled = 0;
      const turns = drawn.map(({ prompt, answer, goesOn }): Sampled => {
        const whole = goesOn ? [...history, ...prompt] : prompt;
        history = [...whole, ...answer];
        // Distinguished by their logprobs.
        const logprobs = answer.map(() => -++sampled / 64);
        return { prompt: whole, answer, logprobs };
      });
      const made = plain(turns);
      const trained = made.flatMap(({ mask, logprobs }) => logprobs.filter((_, at) => mask[at] === 1));
      expect(trained.sort((a, b) => b - a)).toEqual(Array.from({ length: sampled }, (_, at) => -(at + 1) / 64));
      const lengths = made.map(({ mask, logprobs, token_ids }) => [mask.length, logprobs.length, token_ids.length]);
      expect(lengths.every(([a, b, c]) => a === b && b === c)).toBe(true);
      expect(made.map(({ mask }) => mask[0])).toEqual(made.map(() => 0));
      expect(made.map(covered)).toEqual(made.map(({ mask }) => mask.flatMap((bit, at) => (bit === 1 ? [at] : []))));
    }),
  );
});

test("each of a hundred turns of one conversation only takes time for its new tokens", () => {
  let history: number[] = [];
  const turns = Array.from({ length: 100 }, (_, at): Sampled => {
    const prompt = [...history, ...Array.from({ length: 20 }, (_, id) => id + at)];
    history = [...prompt, 1, 2, 3];
    return { prompt, answer: [1, 2, 3] };
  });
  const [sample] = of(turns).samples;
  expect(sample?.token_ids).toEqual(Int32Array.from(history));
  expect(sample?.trainable_tokens).toBe(300);
});

test("excluded calls that continue each other cost as much as their own ids", () => {
  const set = vi.spyOn(Object.getPrototypeOf(Int32Array.prototype), "set");
  const copied = (count: number) => {
    const prompt = Array.from({ length: 50 }, (_, at) => at);
    const [excluded, trained] = [false, true].map((train) => stored([{ prompt, answer: [7], train }]));
    // Each is stored as a suffix of the one before.
    const turns = [...Array.from({ length: count - 1 }, () => excluded ?? []), trained ?? []].flat();
    set.mockClear();
    const { samples } = samplesOf(rollout(turns), DISPATCHED);
    expect(samples.map(({ token_ids, trainable_tokens }) => [token_ids.length, trainable_tokens])).toEqual([
      [51 * count, 1],
    ]);
    return set.mock.calls.reduce((sum, [ids]) => sum + Object(ids).length, 0);
  };
  expect(copied(400)).toBeLessThan(5 * copied(100));
  set.mockRestore();
});
