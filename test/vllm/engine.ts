/** Starts `vllm serve` on loopback, with the start line of docs/vllm.md and the flags that a CPU needs in addition. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { until } from "../local/served-platform.ts";
import type { Vllm } from "./global-setup.ts";

/** Importing torch alone takes half a minute on a busy machine. */
const STARTS_WITHIN_MS = 480_000;
const SAID_KEPT = 8000;
const ENVIRONMENT = {
  VLLM_SERVER_DEV_MODE: "1",
  VLLM_TARGET_DEVICE: "cpu",
  VLLM_CPU_KVCACHE_SPACE: "1",
  VLLM_NO_USAGE_STATS: "1",
  OMP_NUM_THREADS: "2",
  HF_HUB_OFFLINE: "1",
};
/** Required by every route under /v1. */
export const KEY = "sk-suite";
const FLAGS = [
  ...["--served-model-name", "tiny", "--host", "127.0.0.1", "--max-model-len", "1024"],
  ...["--dtype", "float32", "--enforce-eager", "--max-num-seqs", "32"],
  ...["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--api-key", KEY],
];
/** The flag without which training is impossible. */
export const PROCESSED = ["--logprobs-mode", "processed_logprobs"];

export interface Engine {
  /** Without /v1. */
  readonly url: string;
  readonly version: string;
  /** Resolves when it has ended. */
  stop(): Promise<void>;
}

/** Resolves when it answers; throws with its last output if it ends instead. */
export async function startEngine({ bin, model }: Vllm, port: number, flags: readonly string[]): Promise<Engine> {
  const args = ["serve", model, ...FLAGS, "--port", String(port), ...flags];
  const child = spawn(join(bin, "vllm"), args, {
    env: { ...process.env, ...ENVIRONMENT, PATH: `${bin}:${process.env["PATH"]}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => {
      said = (said + text).slice(-SAID_KEPT);
    });
  }
  const exited = once(child, "exit");
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(async () => {
      const { exitCode, signalCode } = child;
      if ((exitCode ?? signalCode) !== null) {
        throw new Error(`vllm ends with ${exitCode ?? signalCode}:\n${said}`);
      }
      return (await answer(`${url}/health`)) !== null;
    }, STARTS_WITHIN_MS);
    await firstCompletion(url);
    const { version } = JSON.parse((await answer(`${url}/version`)) ?? "{}");
    return { url, version, stop };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

/**
 * It answers /health at once, but on a busy machine its first completion takes longer than a probe waits: so this sends
 * a completion with everything that a probe requests.
 */
async function firstCompletion(url: string): Promise<void> {
  const messages = [{ role: "user", content: "Count on from 1." }];
  const asked = { max_tokens: 2, logprobs: true, top_logprobs: 2, return_token_ids: true, repetition_penalty: 2 };
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model: "tiny", messages, ...asked }),
  });
  if (!reply.ok) throw new Error(`its first completion: ${reply.status} ${await reply.text()}`);
}

/** Null if nothing listens yet. */
async function answer(url: string): Promise<string | null> {
  try {
    const reply = await fetch(url);
    return reply.ok ? await reply.text() : null;
  } catch (thrown) {
    if (thrown instanceof TypeError) return null;
    throw thrown;
  }
}
