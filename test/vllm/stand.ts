/** Shared parts of the suite: the platform with its own environment, a trainer that checks, and runs between them. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EndpointView } from "../../src/contract/endpoint.ts";
import { resolveEnvironmentPackage } from "../../src/local/environment-package.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { testPort } from "../local/test-port.ts";
import { KEY } from "./engine.ts";
import type { Vllm } from "./global-setup.ts";
import { Judge, type Judged } from "./judge.ts";

const ENVIRONMENT = join(import.meta.dirname, "environment.ts");

/** The size of a step: large enough that another version's keys and values show. */
const LEARNING_RATE = 0.2;

/** One setting that is tested. */
export interface Held {
  /** Its name in the table. */
  readonly name: string;
  readonly play: "once" | "turns" | "tools";
  readonly temperature: number;
  /** The engine whose weights change; without /v1. */
  readonly engine: string;
  /** The endpoint's name. */
  readonly endpoint: string;
  readonly steps?: number;
  readonly reset_after?: number;
  readonly keep_prefix_cache?: boolean;
}

/** All batches of a run together. */
export interface Finding {
  readonly name: string;
  readonly batches: readonly Judged[];
  readonly samples: number;
  readonly turns: number;
  readonly answered: number;
  readonly tokens: number;
  readonly worst: number;
  readonly beyond: number;
}

export class Stand {
  readonly findings: Finding[] = [];
  readonly client: RollcallClient;
  readonly #vllm: Vllm;
  readonly #platform: Platform;
  readonly #judge: Judge;

  private constructor(vllm: Vllm, platform: Platform) {
    this.#vllm = vllm;
    this.#platform = platform;
    this.#judge = new Judge(vllm);
    this.client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  }

  static async start(vllm: Vllm, port = testPort(0)): Promise<Stand> {
    const folder = join(vllm.folder, "counting");
    mkdirSync(folder, { recursive: true });
    cpSync(ENVIRONMENT, join(folder, "environment.ts"));
    const rollcall = { environment: "./environment.ts" };
    const manifest = { name: "counting", version: "0.1.0", rollcall };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    const platform = await bootPlatform({
      directory: null,
      environments: [resolveEnvironmentPackage("./counting", vllm.folder)],
      port,
      log: () => undefined,
    });
    return new Stand(vllm, platform);
  }

  get url(): string {
    return this.#platform.url;
  }

  /** Probed when it is added. */
  attach(name: string, url: string): Promise<EndpointView> {
    return this.client.endpoints.create({ name, base_url: `${url}/v1`, api_key: KEY });
  }

  /** Plays a training run to its end, from the first weights on; adds the findings to the table. */
  async train({ name, play, temperature, endpoint, steps = 2, ...rest }: Held): Promise<Finding> {
    const { engine, keep_prefix_cache = false } = rest;
    const serving = { engine, weights: this.#vllm.model, keep_prefix_cache };
    await this.#judge.serve(serving);
    const { id, trainer } = await this.client.runs.create(this.request({ play, temperature, endpoint, steps }));
    const batches = await this.#judge.train({
      ...serving,
      ...(rest.reset_after !== undefined && { reset_after: rest.reset_after }),
      url: this.#platform.url,
      run: id,
      token: trainer?.token ?? "",
      folder: join(this.#vllm.folder, id),
      learning_rate: LEARNING_RATE,
    });
    const finding = { name, batches, ...totalOf(batches) };
    this.findings.push(finding);
    return finding;
  }

  /** The request of a training run here: it is never ahead, so that each batch has lag 0. */
  request({ play, temperature, endpoint, steps = 2 }: Pick<Held, "play" | "temperature" | "endpoint" | "steps">) {
    return {
      kind: "training" as const,
      environment: "counting",
      environment_args: { play },
      model: "tiny",
      endpoint,
      // With a seed, so that the same machine samples the same again.
      sampling: { temperature, max_tokens: 48, seed: 0 },
      ...{ group_size: 4, batch_size: { rollouts: 16 }, max_steps: steps },
      ...{ lead: 0, max_off_policy_steps: 0 },
      filters: { zero_variance: "keep" as const },
      trainer: { encoding: "jsonl" as const },
    };
  }

  async stop(): Promise<void> {
    this.#judge.stop();
    await this.#platform.stop();
  }
}

function totalOf(batches: readonly Judged[]): Omit<Finding, "name" | "batches"> {
  const sum = (of: (batch: Judged) => number) => batches.reduce((all, one) => all + of(one), 0);
  return {
    samples: sum(({ samples }) => samples),
    turns: sum(({ turns }) => turns),
    answered: sum(({ answered }) => answered),
    tokens: sum(({ tokens }) => tokens),
    worst: Math.max(...batches.map(({ worst }) => worst)),
    beyond: sum(({ beyond }) => beyond),
  };
}

/** For people: a row for each setting. */
export function table(findings: readonly Finding[]): string {
  const rows = findings.map(({ name, batches, samples, turns, answered, tokens, ...far }) => {
    const counts = [batches.length, samples, turns, answered, tokens].join(" | ");
    return `| ${name} | ${counts} | ${far.worst.toExponential(1)} | ${far.beyond} |`;
  });
  const head = "| setting | batches | samples | turns | after a tool | tokens | max \\|ratio − 1\\| | beyond 1e-5 |";
  return [head, "|---|---|---|---|---|---|---|---|", ...rows, ""].join("\n");
}
