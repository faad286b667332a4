/**
 * Rows of a real run, read by the code of docs/training-data.md, rendered through the chat templates that TRL ships and
 * trained on by its own SFTTrainer and DPOTrainer. Every test is skipped without Python.
 */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../../src/contract/messages.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { type DpoRow, RollcallClient, type SftRow } from "../../src/sdk/client.ts";
import type { Reply } from "../fakes/completion-body.ts";
import { type ModelRequest, type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "../local/test-port.ts";
import { pythonVenv, run } from "../python/python-venv.ts";
import { collect } from "../sdk/recording-fetch.ts";

const PAGE = resolve(import.meta.dirname, "../../docs/training-data.md");
const STEPS = 2;

const Rendered = z.object({ text: z.string().optional(), error: z.string().optional() });
const Course = z.object({
  losses: z.array(z.number()),
  moved: z.number(),
  texts: z.array(z.string()),
});
const Answer = z.object({
  sft: z.array(z.record(z.string(), z.unknown())),
  dpo: z.array(z.record(z.string(), z.unknown())),
  /** The arguments of the call in each row of the file: Python's own JSON of them, and the object. */
  arguments: z.array(z.object({ json: z.string(), object: z.record(z.string(), z.unknown()) })),
  rendered: z.record(z.string(), z.array(Rendered)),
  trained: z.record(z.string(), z.object({ sft: Course, dpo: Course })),
});

/** The model's next call, by its previous one: names, keys and types that differ from row to row. */
const CALLS: readonly object[] = [
  { a: 2, b: 3 },
  { a: "2", b: 3.5 },
  { city: "Zürich \u{1f600}", when: "2024-01-01", deep: { list: [1, "2", null], none: null } },
  {},
];
/** Chat templates that TRL ships, by its names; those that write a call's arguments as one JSON object. */
const AS_JSON = new Set(["qwen2_5", "qwen3", "qwen3_instruct_2507", "llama3_1", "llama3_2", "gptoss"]);
const TEMPLATES = [...AS_JSON, "qwen3_5_think", "glm4moe", "gemma4_v5", "nemotron_3_nano"];
const TRAINED = ["qwen2_5", "qwen3_5_think", "llama3_1", "gptoss"];

let platform: Platform;
let model: ScriptedModel;
let answer: z.infer<typeof Answer> | null = null;
let rows: { readonly sft: SftRow[]; readonly dpo: DpoRow[] };
const folder = mkdtempSync(join(tmpdir(), "rollcall-trl-"));

beforeAll(async () => {
  const requirements = join(import.meta.dirname, "requirements.txt");
  const venv = await pythonVenv("trl", requirements, "ROLLCALL_TRL_VENV");
  if (venv === null) return;
  model = await startScriptedModel({ reply });
  const log = (line: string) => process.stderr.write(`${line}\n`);
  platform = await bootPlatform({ directory: null, port: testPort(30), log });
  rows = await exportedRows();
  const loader = join(folder, "load.py");
  writeFileSync(loader, /```python\n([\s\S]*?)```/.exec(readFileSync(PAGE, "utf8"))?.[1] ?? "");
  const files = [written("sft", rows.sft), written("dpo", rows.dpo)];
  const script = join(import.meta.dirname, "read_rows.py");
  const printed = await run(venv.python, [script, loader, ...files, String(STEPS), TEMPLATES.join(), TRAINED.join()]);
  answer = Answer.parse(JSON.parse(printed.trim().split("\n").at(-1) ?? ""));
});
afterAll(async () => {
  await platform?.stop();
  await model?.stop();
  await rm(folder, { recursive: true });
});

let calls = 0;
const callsOf = new Map<string, number>();

/** One call, and then an answer that is right for every second call of the same question, so that each has pairs. */
function reply({ messages }: ModelRequest): Reply {
  const called = messages.find(({ role }) => role === "tool")?.tool_call_id;
  if (called !== undefined) return Number(called) % 2 === 0 ? solution(messages) : "I do not know.";
  calls += 1;
  const name = calls % 2 === 0 ? "add" : "search";
  const question = textOf(messages[0]);
  const nth = (callsOf.get(question) ?? 0) + 1;
  callsOf.set(question, nth);
  const id = String(2 * calls + (nth % 2));
  return {
    tool_calls: [{ id, name, arguments: { ...CALLS[calls % CALLS.length] } }],
  };
}

/** For a question like "What is 4 * 5 + 4?". */
function solution(messages: ModelRequest["messages"]): string {
  const [a = 0, b = 0] = (textOf(messages[0]).match(/\d+/g) ?? []).map(Number);
  return `It is ${a * b + a}.`;
}

async function exportedRows() {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const endpoint = { base_url: model.url };
  const request = { environment: "calculator", model: "m", endpoint, num_examples: 3 };
  const { id } = await client.runs.create({ ...request, rollouts_per_example: 4 });
  for await (const _ of client.runs.events(id)) {
    // Until the one that ends the run.
  }
  const options = { onLeftOut: () => expect.unreachable("nothing is to be left out") };
  return {
    sft: await collect(client.runs.export(id, {}, options)),
    dpo: await collect(client.runs.export(id, { format: "dpo" }, options)),
  };
}

function written(name: string, lines: readonly object[]): string {
  const file = join(folder, `${name}.jsonl`);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return file;
}

/** Skips without Python; if the suite's set-up failed, no test runs. */
function answered(skip: () => never): z.infer<typeof Answer> {
  return answer ?? skip();
}

test("the page's code reads every message and every tool as it was exported", ({ skip }) => {
  const { sft, dpo } = answered(skip);
  expect(rows.sft.length).toBe(12);
  expect(rows.dpo.length).toBeGreaterThan(2);
  expect(sft).toEqual(rows.sft.map(({ messages, tools }) => ({ messages, tools })));
  const halves = rows.dpo.map(({ prompt, chosen, rejected, tools }) => {
    return { prompt, chosen, rejected, tools };
  });
  expect(dpo).toEqual(halves);
});

test.for(TEMPLATES)("%s renders all that was sent, nothing else, and encoded once", (name, { skip }) => {
  const { rendered, arguments: sent } = answered(skip);
  const texts = rendered[name] ?? [];
  expect(texts.length).toBe(rows.sft.length);
  for (const [at, { text = "", error }] of texts.entries()) {
    expect(error, `row ${at}`).toBeUndefined();
    const { json, object } = sent[at] ?? { json: "none", object: {} };
    // An object that was encoded twice has escaped quotes.
    expect(text).not.toContain('{\\"');
    for (const key of Object.keys(object)) expect(text, `row ${at}`).toContain(key);
    expect(text.includes("Zürich"), `row ${at}`).toBe("city" in object);
    if (AS_JSON.has(name)) expect(text).toContain(json);
  }
});

test.for(TRAINED)("SFTTrainer and DPOTrainer train on the rows with the template of %s", (name, { skip }) => {
  const { trained } = answered(skip);
  const { sft, dpo } = trained[name] ?? {};
  for (const course of [sft, dpo]) {
    expect(course?.losses.length).toBe(STEPS);
    expect(course?.losses.every(Number.isFinite)).toBe(true);
    expect(course?.moved).toBeGreaterThan(0);
    expect(course?.texts.length).toBeGreaterThan(0);
    for (const text of course?.texts ?? []) expect(text).not.toContain('{\\"');
  }
});
