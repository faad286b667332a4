import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { displayWidth } from "../../src/cli/terminal/text.ts";
import { transcript } from "../../src/cli/terminal/transcript.ts";
import { aRollout } from "./a-run.ts";

const PLAIN = { width: 64, colour: false };

test("a transcript has the head, each turn with its calls next to their results, and the scores", () => {
  expect(transcript(aRollout(), PLAIN)).toBe(`Rollout ro_1
outcome    scored · reward 1.100
run        run_1
task       1 (group 1, slot 0, attempt 0)
stop       answer without a tool call
used       2 turns, 200 + 40 tokens, 75 ms at the model
began      2026-11-21 10:52:09Z

── Turn 1 ───────────────── 100 + 20 tokens · 37 ms · tool_calls
user       What is 3 + 4?
assistant  add({"a":3,"b":4}) → 7
           add({}) → Error: a is required

── Turn 2 ───────────── 100 + 20 tokens · 37 ms · 3 calls · stop
assistant  It is 7.

── The end ─────────────────────────────────────────────────────
user       Right.

── Scores ──────────────────────────────────────────────────────
right         1.000  × 1
brief             –  × 0.1
num_turns     2.000  metric
brief      ScorerError: no

── State ───────────────────────────────────────────────────────
           low: 1`);
});

test("a result that does not fit next to its call is below it", () => {
  const text = transcript(aRollout(), { width: 40, colour: false });
  expect(text).toContain(`assistant  add({"a":3,"b":4}) → 7
           add({})
  → tool   Error: a is required`);
});

test("judges have their verdict and reason, or their error; a tool call that failed is marked", () => {
  const judgement = {
    ...{ model: "gpt", key: "k", pass: 0, seed: null, left_out: 0, cached: false, calls: 1, cost_micros: null },
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  const judgements = [
    { ...judgement, judge: "tone", verdict: "yes", reason: "It is polite.", error: null },
    { ...judgement, judge: "facts", verdict: null, reason: null, error: "no verdict in its answer", reply: "Hm." },
  ];
  const turns = aRollout().turns.map((turn, at) => (at === 0 ? { ...turn, tool_failed: [false, true] } : turn));
  const text = transcript(aRollout({ turns, judgements }), PLAIN);
  expect(text).toContain('assistant  add({"a":3,"b":4}) → 7\n           add({}) → failed: Error: a is required\n');
  expect(text).toMatch(
    /── Judges ─+\ntone {7}yes, by gpt\nreason {5}It is polite.\nfacts {6}no verdict, by gpt\nerror {6}no verdict in its answer\nreply {6}Hm\.\n/,
  );
});

test("a call without a result says so, and so does an answer without text", () => {
  const rollout = aRollout();
  const turns = rollout.turns.slice(0, 1);
  const text = transcript(aRollout({ turns, completion: rollout.completion.slice(0, 1) }), PLAIN);
  expect(text).toContain("add({}) → (no result)");
  const silent = rollout.turns.map((turn) => ({
    ...turn,
    completion: { role: "assistant", content: "" },
  }));
  expect(transcript(aRollout({ turns: silent }), PLAIN)).toContain("assistant  (nothing)");
});

test("a failed rollout shows its error and what led to it; one that has not started shows its prompt", () => {
  const error = {
    error: "ProviderError",
    message: "the endpoint answered 500",
    error_chain_str: "ProviderError: the endpoint answered 500 → Error: boom",
    error_chain_repr: "…",
    retryable: true,
  };
  const failed_calls = [
    { turn: 0, call: 1, at: 0, reason: "timeout" as const, error: "ModelError", message: "silent" },
  ];
  const text = transcript(
    aRollout({
      outcome: "failed",
      reason: "provider",
      reward: null,
      error,
      turns: [],
      failed_calls,
    }),
    { width: 100, colour: false },
  );
  expect(text).toContain("turn 1     call 1: ModelError: silent\n");
  expect(text).toContain("outcome    failed · provider\n");
  expect(text).toContain("error      ProviderError: the endpoint answered 500\n");
  expect(text).toContain("chain      ProviderError: the endpoint answered 500 → Error: boom");
  expect(text).toContain("user       What is 3 + 4?");
});

test("a turn that an agent excluded from training says so", () => {
  const turns = aRollout().turns.map((turn, at) => (at === 1 ? { ...turn, trained: false } : turn));
  expect(transcript(aRollout({ turns }), { width: 100, colour: false })).toMatch(/Turn 2 .* · not trained\n/);
});

test("a history an environment rewrote is marked", () => {
  const rollout = aRollout();
  const turns = rollout.turns.map((turn) =>
    turn.index === 1 ? { ...turn, prompt: { ...turn.prompt, keep: 1 } } : turn,
  );
  expect(transcript(aRollout({ turns }), PLAIN)).toContain("the history was rewritten: 1 of 2 messages kept");
});

test("a turn that continues an earlier one says so, and the results of its calls are shown with them", () => {
  const rollout = aRollout();
  const [first, second] = rollout.turns;
  if (first === undefined || second === undefined) throw new Error("the rollout has two turns");
  const side = { ...second, prompt: { keep: 0, append: [{ role: "user", content: "aside" }] } };
  const turns = [first, side, { ...second, index: 2, prompt: { ...second.prompt, after: 0 } }];
  const text = transcript(aRollout({ turns }), PLAIN);
  const plain = transcript(rollout, PLAIN);
  expect(text).toContain("the history was rewritten: 0 of 2 messages kept");
  expect(text).toMatch(/Turn 3 .*\ncontinues turn 1\n/);
  expect(text).not.toContain("(no result)");
  const firstTurn = (all: string) => all.slice(all.indexOf("Turn 1 "), all.indexOf("Turn 2 "));
  expect(firstTurn(text)).toBe(firstTurn(plain));
});

test("a model's text moves no cursor, changes no colour and reverses no text", () => {
  const nasty = "a\x1b[2Jb\x07c\u202ed\r\ne\x9b31mf";
  const text = transcript(aRollout({ prompt: [{ role: "user", content: nasty }], turns: [] }), PLAIN);
  expect(text).toContain("user       a\\u{1b}[2Jb\\u{7}c\\u{202e}d\n           e\\u{9b}31mf");
});

test("colours change nothing but the colours, and no line is wider than the terminal", () => {
  const long = {
    role: "user",
    content: `${"word ".repeat(40)}${"x".repeat(100)} 漢字漢字漢字漢字漢字`,
  };
  for (const width of [30, 64, 120]) {
    const rollout = aRollout({ prompt: [long], turns: [] });
    const plain = transcript(rollout, { width, colour: false });
    const coloured = transcript(rollout, { width, colour: true });
    expect(coloured).not.toBe(plain);
    expect(stripVTControlCharacters(coloured)).toBe(plain);
    expect(Math.max(...plain.split("\n").map(displayWidth))).toBeLessThanOrEqual(width);
  }
});

test("a long message is cut, with a note of what is missing", () => {
  const long = { role: "user", content: `${"line\n".repeat(150)}` };
  const text = transcript(aRollout({ prompt: [long], turns: [] }), PLAIN);
  expect(text.match(/line/g)).toHaveLength(100);
  expect(text).toContain("… 251 more characters; --json has them");
});

test("content in parts is shown as its text, with a line for each part that is not text", () => {
  const content = [
    { type: "text", text: "Look at this:" },
    { type: "image_url", image_url: { url: "https://host.test/a.png" } },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0K" } },
    { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } },
  ];
  const text = transcript(aRollout({ turns: [], prompt: [{ role: "user", content }] }), PLAIN);
  expect(text).toContain(`user       Look at this:
           [image_url https://host.test/a.png]
           [image_url]
           [input_audio]`);
});
