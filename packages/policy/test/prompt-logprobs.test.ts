/** POST /v1/completions with `prompt_logprobs`, in vLLM's form: the logprobs of given tokens. */
import { expect, test } from "vitest";
import * as z from "zod";
import { randomWeights } from "./scripted-weights.ts";
import { MODEL, type Served, serve } from "./served-policy.ts";

const Entry = z.record(z.string(), z.object({ logprob: z.number(), rank: z.int(), decoded_token: z.string() }));
const Reply = z.object({
  choices: z.array(
    z.object({
      token_ids: z.array(z.int()).optional(),
      logprobs: z.object({ token_logprobs: z.array(z.number()) }).nullable(),
      prompt_logprobs: z.array(Entry.nullable()).nullable(),
    }),
  ),
  usage: z.object({ prompt_tokens: z.int() }),
});

async function complete({ post }: Served, body: object) {
  const response = await post("/v1/completions", { model: MODEL, ...body });
  if (response.status !== 200) throw new Error(await response.text());
  return Reply.parse(await response.json());
}

const PROMPT = [5, 9, 2, 7];

test("the logprobs of a prompt are those with which its tokens were sampled, also if the prompt was cached", async () => {
  const served = await serve(randomWeights());
  const sampling = { temperature: 1, seed: 3, max_tokens: 12, ignore_eos: true, return_token_ids: true, logprobs: 0 };
  const { choices } = await complete(served, { prompt: PROMPT, ...sampling });
  const [sampled] = choices;
  const ids = [...PROMPT, ...(sampled?.token_ids ?? [])];
  for (const prompt_logprobs of [0, 1, 1]) {
    const scored = await complete(served, { prompt: ids, max_tokens: 1, prompt_logprobs });
    const entries = scored.choices[0]?.prompt_logprobs ?? [];
    expect([entries.length, entries[0], scored.usage.prompt_tokens]).toEqual([ids.length, null, ids.length]);
    const own = ids.map((id, at) => entries[at]?.[String(id)]?.logprob);
    const wanted = sampled?.logprobs?.token_logprobs ?? [];
    expect(own.slice(PROMPT.length)).toEqual(wanted.map((logprob) => expect.closeTo(logprob, 5)));
  }
});

test("each entry has the token itself with its rank, and as many of the likeliest as were asked for", async () => {
  const served = await serve(randomWeights());
  const { choices } = await complete(served, { prompt: PROMPT, max_tokens: 1, prompt_logprobs: 2 });
  const entries = (choices[0]?.prompt_logprobs ?? []).slice(1);
  for (const [at, entry] of entries.entries()) {
    const ranks = Object.values(entry ?? {}).map(({ rank }) => rank);
    const own = entry?.[String(PROMPT[at + 1])];
    expect(ranks).toEqual(expect.arrayContaining([1, 2]));
    expect(ranks.length).toBe((own?.rank ?? 0) <= 2 ? 2 : 3);
    const likeliest = Object.values(entry ?? {}).find(({ rank }) => rank === 1);
    expect(likeliest?.logprob).toBeGreaterThanOrEqual(own?.logprob ?? 0);
  }
});

test("several prompts are answered each with its own, and one alongside others with the same numbers", async () => {
  const served = await serve(randomWeights());
  const other = [3, 3, 8];
  const both = await complete(served, { prompt: [PROMPT, other], max_tokens: 1, prompt_logprobs: 1 });
  const alone = await complete(served, { prompt: other, max_tokens: 1, prompt_logprobs: 1 });
  expect(both.choices.map(({ prompt_logprobs }) => prompt_logprobs?.length)).toEqual([4, 3]);
  expect(both.choices[1]?.prompt_logprobs).toEqual(alone.choices[0]?.prompt_logprobs);
});

test("they are refused in a stream, as vLLM does, and null if they were not asked for", async () => {
  const served = await serve(randomWeights());
  const streamed = await served.post("/v1/completions", { prompt: PROMPT, prompt_logprobs: 1, stream: true });
  expect([streamed.status, await streamed.text()]).toEqual([400, expect.stringContaining("prompt_logprobs")]);
  const plain = await complete(served, { prompt: PROMPT, max_tokens: 1 });
  expect(plain.choices[0]?.prompt_logprobs).toBeNull();
});
