/**
 * The suite's data: one platform, with runs made of real rollouts against scripted models, and one rollout of 300,000
 * messages, calls and results that replaces a short one, because a model would need hours for it.
 */
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import type { RunRequestInput } from "../../src/contract/run.ts";
import { bundleEnvironment } from "../../src/local/environment-bundle.ts";
import { bootPlatform } from "../../src/local/platform.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { ScriptedTrainer } from "../fakes/scripted-trainer.ts";
import { pack } from "../hub/packages.ts";
import { wheelOf } from "../hub/wheels.ts";
import { testPort } from "../local/test-port.ts";
import { ATTACK, startActors, startAttacker, TASKS } from "./actors.ts";
import { PLANTING, plantLongRollout, ROOT } from "./planting.ts";
import { LETTERS, SEARCHING } from "./published.ts";

/** The text of a stranger, with everything that a page must not follow, and too long to be rendered at once. */
const README = [
  "# Guess a letter\r\n\r\nA **game** with `code`.\r\n",
  ...ATTACK,
  "[elsewhere](https://attack.test/page) [inside](docs/rules.md) [data](data:text/html,x)",
  "| a | b |\n|---|---|\n| 1 | 2 |\n",
  "```\nlong\n\ncode\n```\n",
  ...Array.from({ length: 200 }, (_, at) => `Paragraph ${at} of a README that is long.\n`),
  `${"> ".repeat(400)}\n`,
  ...Array.from({ length: 3000 }, () => "A line of text.\n"),
].join("\n");

/** Each turn has 257 messages, calls and results. */
export const LONG_TURNS = 1168;

/** The URLs of the platform and of a model for a test's own runs, and the ids of the data. */
export interface Stage {
  readonly url: string;
  readonly key: string;
  readonly model: string;
  /** Evals of the same tasks: the first answers half of them correctly, the second a third. */
  readonly before: string;
  readonly after: string;
  readonly hostile: string;
  readonly long: string;
  readonly longRollout: string;
  readonly training: string;
  readonly dataset: string;
  readonly endpoint: string;
  readonly fleet: string;
  readonly trigger: string;
  readonly webhook: string;
  readonly report: string;
  /** A rollout of `before` with a review. */
  readonly reviewed: string;
}

declare module "vitest" {
  interface ProvidedContext {
    readonly stage: Stage;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const platform = await bootPlatform({
    directory: null,
    port: testPort(0),
    hungAfterMs: 300_000,
    log: () => undefined,
    worker: PLANTING,
  });
  const [actors, attacker] = await Promise.all([startActors(), startAttacker()]);
  const stop = async () => {
    await actors.stop();
    attacker.stop();
    await platform.stop();
  };
  try {
    const { url, key, policyUrl } = platform;
    const set = new Setting(url, key, policyUrl, actors.url);
    project.provide("stage", { url, key, model: actors.url, ...(await set.make(attacker.url)) });
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

class Setting {
  readonly #client: RollcallClient;
  readonly #url: string;
  readonly #policy: string;
  readonly #model: string;

  constructor(url: string, key: string, policy: string, model: string) {
    [this.#url, this.#policy, this.#model] = [url, policy, model];
    this.#client = new RollcallClient({ baseUrl: url, apiKey: key });
  }

  async make(attacker: string): Promise<Omit<Stage, "url" | "key" | "model">> {
    const [before, after, hostile, long, training] = [
      await this.#judged("old"),
      await this.#judged("new"),
      await this.#attacked(attacker),
      await this.#long(),
      await this.#training(),
    ];
    await this.#published();
    const { url: report } = await this.#client.reportLinks.create(before);
    const reviewed = await this.#reviewed(before);
    if (report === null) throw new Error("the link to the report has no address");
    return { before, after, hostile, ...long, training, ...(await this.#things()), report, reviewed };
  }

  async #played(request: RunRequestInput): Promise<string> {
    const { id } = await this.#client.runs.create(request);
    for await (const _ of this.#client.runs.events(id));
    return id;
  }

  #judged(model: string): Promise<string> {
    return this.#played({
      name: `the ${model} model`,
      ...{ environment: "judged-qa", model, endpoint: { base_url: this.#model, prices: PRICES }, dataset: TASKS },
      ...{ rollouts_per_example: 2, min_scored: 0.5, limits: { max_retries: 0 } },
      judges: { default: { model: "judge", endpoint: { base_url: this.#model, prices: PRICES } } },
    });
  }

  /** A person agrees with the judge on one rollout, and not on another. */
  async #reviewed(run: string): Promise<string> {
    const { data } = await this.#client.rollouts.list(run, { filter: "outcome:scored", limit: 2 });
    for (const [at, { id, reward }] of data.entries()) {
      const correct = at === 0 ? Number(reward) : 1 - Number(reward);
      const note = "The reply\nnames the item.";
      await this.#client.reviews.put(id, { mark: at === 0 ? "good" : "bad", note, scores: { correct }, why: "read" });
    }
    return data[0]?.id ?? "";
  }

  #attacked(attacker: string): Promise<string> {
    const dataset = [{ question: ATTACK.join("\n"), answer: ATTACK[0] }];
    return this.#played({
      name: "<b>hostile</b>",
      ...{ environment: "judged-qa", model: "<i>m</i>", endpoint: { base_url: attacker }, dataset, min_scored: 0 },
      judges: { default: { model: "<i>judge</i>", endpoint: { base_url: attacker } } },
    });
  }

  async #long(): Promise<Pick<Stage, "long" | "longRollout">> {
    const dataset = [{ question: "What is 12 * 3 + 12?", answer: "48" }];
    const endpoint = { base_url: this.#model };
    const long = await this.#played({ environment: "calculator", model: "old", endpoint, dataset });
    return { long, longRollout: await plantLongRollout(this.#url, long, LONG_TURNS) };
  }

  async #training(): Promise<string> {
    const { id, trainer } = await this.#client.runs.create({
      kind: "training",
      ...{ name: "a training", environment: "calculator", environment_args: { steps: 1, max: 9 } },
      ...{ model: "rollcall-policy", endpoint: { base_url: this.#policy } },
      sampling: { max_tokens: 16, extra_body: { min_tokens: 1 } },
      ...{ group_size: 4, batch_size: { rollouts: 16 }, max_steps: 4 },
      filters: { zero_variance: "keep" },
    });
    await new ScriptedTrainer({ url: this.#url, run: id, token: trainer?.token ?? "" }).work();
    for await (const _ of this.#client.runs.events(id));
    return id;
  }

  async #published(): Promise<void> {
    const { key } = (await this.#client.organizations.create({ name: "alice", project: "main" })).key;
    const alice = new RollcallClient({ baseUrl: this.#url, apiKey: key ?? "", project: "main" });
    const publish = async (name: string, version: string, file: string, args = {}) => {
      const { text: code } = await bundleEnvironment(join(ROOT, file));
      const manifest = { description: "guess a word, or a number", rollcall: { args } };
      const bytes = await pack({ name, version, code, manifest, files: { "package/README.md": README } });
      await alice.environments.publish(bytes, { visibility: "public", allowFailing: true });
    };
    await publish(LETTERS, "1.0.0", "environments/guess-number/environment.ts");
    await publish(LETTERS, "1.1.0", "test/hub/faulty.ts", { kind: "constant" });
    await publish(SEARCHING, "0.9.0", "test/hub/probing.ts");
    await publish(SEARCHING, "1.0.0", "test/hub/probing.ts");
    await this.#client.environments.takeDown(`${SEARCHING}@0.9.0`, "a complaint");
    const { file, bytes } = await wheelOf("py_game", "1.0.0rc1");
    await alice.environments.publish(bytes, { file, visibility: "public" });
    await this.#played({
      ...{ environment: `${LETTERS}@1.0.0`, model: "old", endpoint: { base_url: this.#model }, num_examples: 2 },
      min_scored: 0,
    });
    await alice.environments.update(`${LETTERS}@1.0.0`, { yanked: { reason: "its reward counts a wrong guess" } });
  }

  async #things(): Promise<Pick<Stage, "dataset" | "endpoint" | "fleet" | "trigger" | "webhook">> {
    const client = this.#client;
    const base_url = this.#model;
    const [dataset, endpoint, fleet, trigger, webhook] = [
      await client.datasets.upload(TASKS, { name: "items" }),
      await client.endpoints.create({ name: "actors", base_url }),
      await client.fleets.create({ name: "gpus", replicas: [{ name: "gpu-0", base_url }] }),
      await client.triggers.create({
        ...{
          name: "nightly",
          verify: { scheme: "standard" },
          schedule: { cron: "0 6 * * *", timezone: "Europe/Berlin" },
        },
        run: { environment: "calculator", model: "old", endpoint: { base_url }, num_examples: 4 },
      }),
      await client.webhookEndpoints.create({ url: `${base_url}/hook` }),
    ];
    return { dataset: dataset.id, endpoint: endpoint.id, fleet: fleet.id, trigger: trigger.id, webhook: webhook.id };
  }
}

const PRICES = { input_per_mtok_micros: 1_000_000, output_per_mtok_micros: 2_000_000 };
