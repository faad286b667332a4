import { POLICY_MODEL } from "@rollcall/policy/known-environments";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { chooseModel } from "../../src/cli/eval/request.ts";
import { asCommandError, EXIT } from "../../src/cli/exit.ts";

const POLICY = { policyUrl: "http://127.0.0.1:1/v1" };
const ELSEWHERE = { policyUrl: null };
const said: string[] = [];
const options = { force: false, log: (line: string) => said.push(line) };

beforeEach(() => {
  vi.stubEnv("OPENAI_BASE_URL", "");
  vi.stubEnv("OPENAI_API_KEY", "");
  said.length = 0;
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** The exit code and the message of a refused choice. */
function refusal(choose: () => unknown): [number, string] {
  try {
    choose();
  } catch (thrown) {
    const { exit, message } = asCommandError(thrown);
    return [exit, message];
  }
  throw new Error("it was accepted");
}

test("without an endpoint the policy plays the environments it knows, at the sizes it knows, and says so", () => {
  expect(chooseModel({}, "calculator", POLICY, options)).toEqual({
    model: POLICY_MODEL,
    // Its tokens cost nothing, so that the cost of such a run is known.
    endpoint: { base_url: POLICY.policyUrl, prices: { input_per_mtok_micros: 0, output_per_mtok_micros: 0 } },
    environment_args: { steps: 1, max: 9 },
    sampling: { temperature: 1, max_tokens: 16, extra_body: { min_tokens: 1 } },
  });
  expect(said).toEqual([expect.stringContaining("the bundled policy plays calculator")]);
});

test("arguments that the user gave do not change, and sampling is completed", () => {
  const draft = { environment_args: { max: 5 }, sampling: { temperature: 0 } };
  expect(chooseModel(draft, "calculator", POLICY, options)).toMatchObject({
    environment_args: { max: 5 },
    sampling: { temperature: 0, max_tokens: 16 },
  });
});

test("a given seed is the seed of the policy's sampling, unless its sampling has one; no other model gets it", () => {
  const seedOf = (draft: Parameters<typeof chooseModel>[0]) =>
    chooseModel(draft, "calculator", POLICY, options).sampling?.seed;
  expect([seedOf({}), seedOf({ seed: 0 }), seedOf({ seed: 7 })]).toEqual([undefined, 0, 7]);
  expect(seedOf({ seed: 7, sampling: { seed: 9 } })).toBe(9);
  expect(seedOf({ seed: 7, sampling: { seed: null } })).toBeNull();
  expect(seedOf({ seed: 7, model: "m", endpoint: { base_url: "https://m.example/v1" } })).toBe(undefined);
});

test("an environment that the policy was not trained on is refused with the names of the others, unless forced", () => {
  const [exit, message] = refusal(() => chooseModel({}, "mine", POLICY, options));
  expect(exit).toBe(EXIT.usage);
  expect(message).toMatch(/-b.*calculator, guess-number, grid-walk, reverse-text.*--force/);
  const forced = chooseModel({}, "mine", POLICY, { ...options, force: true });
  expect(forced).toMatchObject({ model: POLICY_MODEL, sampling: { max_tokens: 16 } });
  expect(forced.environment_args).toBeUndefined();
});

test("answers of the bundled policy are not cached, because a training changes its weights", () => {
  const [exit, message] = refusal(() => chooseModel({ answer_cache: true }, "calculator", POLICY, options));
  expect(exit).toBe(EXIT.usage);
  expect(message).toContain("set another endpoint with -b or -e");
});

test("a remote platform has no policy: the endpoint must be named", () => {
  const [exit, message] = refusal(() => chooseModel({}, "calculator", ELSEWHERE, options));
  expect([exit, message]).toEqual([EXIT.usage, "calculator needs a model: set its endpoint with -b"]);
});

test("a named endpoint, one by URL and OPENAI_BASE_URL go before the policy, and need a model", () => {
  const choose = (draft: Parameters<typeof chooseModel>[0]) =>
    chooseModel({ model: "m", ...draft }, "calculator", POLICY, options);
  expect(choose({ endpoint: "mine" })).toEqual({ model: "m", endpoint: "mine" });
  const given = { base_url: "http://h/v1", api_key: "sk-1" };
  expect(choose({ endpoint: given })).toEqual({ model: "m", endpoint: given });
  vi.stubEnv("OPENAI_BASE_URL", "http://usual/v1");
  vi.stubEnv("OPENAI_API_KEY", "sk-2");
  const usual = { base_url: "http://usual/v1", api_key: "sk-2" };
  expect(choose({})).toEqual({ model: "m", endpoint: usual });
  expect(refusal(() => chooseModel({}, "calculator", POLICY, options))).toEqual([
    EXIT.usage,
    "a model is required: -m",
  ]);
  expect(said).toEqual([]);
});
