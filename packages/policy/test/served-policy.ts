/** A policy server in the test's own process, with weights of the test's choice, and the official SDK as its client. */
import OpenAI from "openai";
import { afterEach } from "vitest";
import { renderChat, type TemplateMessage } from "../chat-template.ts";
import { Engine } from "../engine.ts";
import { ServingOptions, type ServingOptionsInput } from "../request-schemas.ts";
import { servePolicy } from "../server.ts";
import { END, encodeText } from "../tokenizer.ts";
import { type Line, weightsThatSay } from "./scripted-weights.ts";

export const MODEL = "policy";

export interface Served {
  readonly url: string;
  readonly engine: Engine;
  readonly client: OpenAI;
  /** The reply to a JSON body; `headers` are added to the request. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Stopped after the test. */
export async function serve(weights: Float32Array, maxRunning = 256, given: ServingOptionsInput = {}): Promise<Served> {
  const serving = ServingOptions.parse(given);
  const keepPrefixCache = serving.keep_prefix_cache;
  const engine = new Engine({ weights, version: "first", maxRunning, seed: 1, keepPrefixCache });
  const context = { engine, model: MODEL, serving, now: () => 1_700_000_000_000 };
  const listener = await servePolicy(context, 0);
  stops.push(async () => {
    await listener.close();
    engine.stop();
  });
  const url = `http://127.0.0.1:${listener.port}`;
  return {
    url,
    engine,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 }),
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
  };
}

/** The model's reply to a conversation: the text in the tokenizer's own encoding, and the end token. */
export function reply(messages: readonly TemplateMessage[], text: string): Line {
  const after = renderChat(messages, { addGenerationPrompt: true }).length;
  return { after, ids: [...encodeText(text), END] };
}

export function serveReply(messages: readonly TemplateMessage[], text: string): Promise<Served> {
  return serve(weightsThatSay([reply(messages, text)]));
}
