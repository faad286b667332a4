/**
 * Searches every byte that a platform stores for secrets: keys of a policy, a judge and an engine, an environment's
 * secret, the secret that signs offers to a trainer, and the platform's own key and secret.
 */
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, expect, test } from "vitest";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { makeThrowAwayDirectory, secretOf } from "../../src/local/state-directory.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { type ScriptedModel, startScriptedModel } from "../fakes/scripted-model.ts";
import { testPort } from "./test-port.ts";
import { calculator } from "./training/training-runs.ts";

const cleanup: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const undo of cleanup.splice(0).reverse()) await undo();
});

const PLANTED = {
  policy: "sk-planted-policy-5ca1ab1e7e57",
  judge: "sk-planted-judge-b01dface0ff5",
  engine: "sk-planted-engine-decade0fbead",
  secret: "planted-scorer-secret-c0ffee5ea1ed",
};

/** Repeats what it was sent, like servers that explain their refusals. */
async function startModel(): Promise<ScriptedModel> {
  const model = await startScriptedModel({
    reply: ({ headers, messages }) => {
      const asked = JSON.stringify(messages);
      if (asked.includes("verdict"))
        return JSON.stringify({ reason: `you sent ${headers.authorization}`, verdict: "right" });
      return `Mary Shelley. You sent ${headers.authorization}, in base64 ${btoa(headers.authorization ?? "")}.`;
    },
  });
  cleanup.push(() => model.stop());
  return model;
}

/** A scorer that gets a signed request and repeats its headers. */
async function startScorer(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ score: 1, reason: JSON.stringify(request.headers) }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.push(async () => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/score`;
}

async function runEverything({ url, key, policyUrl }: Platform): Promise<string[]> {
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  const model = await startModel();
  await client.secrets.create({ name: "SCORER", value: PLANTED.secret });
  await client.endpoints.create({ name: "policy", base_url: model.url, api_key: PLANTED.policy, model: "m" });
  const judged = await client.runs.create({
    ...{ environment: "judged-qa", model: "m", endpoint: "policy" },
    dataset: ["Who wrote Frankenstein?", "Whose book is Mathilda?"].map((question) => ({
      question,
      answer: "Shelley",
    })),
    judges: { default: { model: "j", endpoint: { base_url: model.url, api_key: PLANTED.judge } } },
  });
  const scorer = { type: "http" as const, name: "mine", url: await startScorer(), secret: "SCORER" };
  const graded = await client.runs.create({
    ...{ environment: "graded-dataset", environment_args: { graders: [scorer] }, model: "m", endpoint: "policy" },
    dataset: [{ prompt: "Who wrote Frankenstein?" }],
  });
  const trained = await client.runs.create({
    ...calculator(policyUrl ?? ""),
    endpoint: { base_url: policyUrl ?? "", api_key: PLANTED.engine },
    trainer: { delivery: "push" as const, url: await startScorer() },
    ...{ group_size: 2, batch_size: { rollouts: 4 }, max_steps: 1, filters: { zero_variance: "keep" as const } },
  });
  const { push_secret = null, token = "" } = trained.trainer ?? {};
  for await (const { event, data } of client.runs.events(trained.id)) {
    // By then a batch was offered, and all of the offer's secrets were used.
    if (event === "run.progress" && data.counts.scored >= 4) break;
  }
  await client.runs.cancel(trained.id);
  const scores: number[] = [];
  for (const { id } of [judged, graded]) {
    for await (const event of client.runs.events(id)) void event;
    scores.push((await client.runs.get(id)).counts.scored);
  }
  expect(scores).toEqual([2, 1]);
  expect(push_secret).toMatch(/^whsec_/);
  return [push_secret ?? "", (push_secret ?? "").slice("whsec_".length), token];
}

/** Every file in the folder, as stored and, if it is gzipped, also unpacked. */
function* bytesOf(folder: string): Generator<[path: string, bytes: Buffer]> {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    yield [path, bytes];
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) yield [`${path} (inflated)`, gunzipSync(bytes)];
  }
}

/** The text itself, in UTF-16, in hexadecimal, and in base64 at every offset. */
function formsOf(text: string): Buffer[] {
  const hex = Buffer.from(text).toString("hex");
  const base64 = [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]).toString("base64");
    // The first and last base64 letters depend on the neighbouring bytes.
    const inner = whole.slice(Math.ceil((before * 8) / 6), Math.floor(((before + text.length) * 8) / 6));
    return [inner, inner.replaceAll("+", "-").replaceAll("/", "_")];
  });
  const plain = [text, hex, hex.toUpperCase(), ...base64];
  return plain.flatMap((form) => [Buffer.from(form), Buffer.from(form, "utf16le")]);
}

function placesOf(folder: string, text: string): string[] {
  const forms = formsOf(text);
  return [...bytesOf(folder)].flatMap(([path, bytes]) => (forms.some((form) => bytes.includes(form)) ? [path] : []));
}

test("no secret is in any stored byte, neither plain, nor in base64 or hexadecimal", async () => {
  const directory = makeThrowAwayDirectory();
  cleanup.push(async () => rmSync(directory, { recursive: true, force: true }));
  const platform = await bootPlatform({ directory, port: testPort(30), log: () => undefined });
  cleanup.push(() => platform.stop());
  const told = [...(await runEverything(platform)), ...Object.values(PLANTED), platform.key, secretOf(directory)];
  await platform.stop();
  const store = join(directory, "store");
  for (const text of told) expect({ text, places: placesOf(store, text) }).toEqual({ text, places: [] });
  // The search finds known texts, in each of the searched places.
  expect(placesOf(store, "Mary Shelley").length).toBeGreaterThan(0);
  expect(placesOf(store, "judged-qa").length).toBeGreaterThan(0);
});
