/** A platform, and training runs on fleets of two fake engines, one of which fails. Checks what the run reported. */
import type { UpdateMode } from "../../src/contract/fleet.ts";
import { decodeRows, type SampleRow } from "../../src/core/training/sample-row.ts";
import type { FleetView, ReplicaView } from "../../src/fleets/wire.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { ApiRequestError, RollcallClient } from "../../src/sdk/client.ts";
import { type FakeVllm, startFakeVllm, weightsOf } from "../fakes/fake-vllm.ts";
import { ScriptedTrainer } from "../fakes/scripted-trainer.ts";
import type { Era } from "../fakes/vllm-routes.ts";
import { testPort } from "../local/test-port.ts";
import type { Fault } from "./faults.ts";

const STEPS = 3;
/** Seconds for each pause, load, resume and call. */
const PHASE_S = 6;
const LOOK_MS = 300;
/** How long a healed engine may take to come back: longer than the longest wait between two tries. */
const PATIENCE_MS = 100_000;
/** A probe every ten seconds, which may take five; or the phases of two consecutive updates. */
const OUT_WITHIN_MS = 45_000;
/** The duration of faults that are not shown. */
const UNSEEN_MS = 2000;
/** The replica was out between two polls. */
const WAS_OUT = "was out";
const OUT: readonly (ReplicaView["state"] | typeof WAS_OUT)[] = ["updating", "down", "stale", WAS_OUT];

export interface Case {
  readonly name: string;
  readonly era: Era;
  readonly mode: UpdateMode;
  readonly fault: Fault;
}

/** The result of a case. */
export interface Played {
  /** The changes in what was shown of the failing replica. */
  readonly shown: readonly string[];
  readonly states: readonly string[];
  readonly paused: readonly unknown[];
  readonly status: string;
  readonly lost: number;
  readonly violations: readonly unknown[];
  /** Tokens with a version that did not sample them. */
  readonly wrong: readonly string[];
  readonly stale_prefixes: number;
  readonly samples: number;
}

export class Stand {
  readonly client: RollcallClient;
  readonly #platform: Platform;

  private constructor(platform: Platform) {
    this.#platform = platform;
    this.client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  }

  static async start(): Promise<Stand> {
    // A process that a busy machine starves is not hung.
    const patient = { hungAfterMs: 300_000, log: () => undefined };
    return new Stand(await bootPlatform({ directory: null, port: testPort(0), ...patient }));
  }

  async play(one: Case): Promise<Played> {
    const engines = await Promise.all([0, 1].map(() => startFakeVllm({ era: one.era, reply: () => GUESS })));
    try {
      return await new Play(this.client, this.#platform.url, one, engines).play();
    } finally {
      await Promise.all(engines.map((engine) => engine.stop()));
    }
  }

  stop(): Promise<void> {
    return this.#platform.stop();
  }
}

const GUESS = "<guess>\nslate\n</guess>";

class Play {
  readonly #client: RollcallClient;
  readonly #url: string;
  readonly #case: Case;
  readonly #engines: readonly FakeVllm[];
  readonly #name = `f-${crypto.randomUUID()}`;
  readonly #shown: string[] = [];
  readonly #rows: SampleRow[] = [];
  #trainer = new ScriptedTrainer({ url: "", run: "", token: "" });
  /** The fleet at the last poll. */
  #seen: FleetView | null = null;
  #state: "well" | "struck" | "healed" = "well";
  #over = false;

  constructor(client: RollcallClient, url: string, one: Case, engines: readonly FakeVllm[]) {
    [this.#client, this.#url, this.#case, this.#engines] = [client, url, one, engines];
  }

  async play(): Promise<Played> {
    const { id, trainer } = await this.#begin();
    this.#trainer = new ScriptedTrainer({ url: this.#url, run: id, token: trainer?.token ?? "" });
    await this.#trainer.register();
    const over = () => {
      this.#over = true;
    };
    await Promise.all([this.#watch(), this.#strikeAndHeal(), this.#train().finally(over)]);
    const states = (await this.#fleet()).replicas.map(({ state }) => state);
    const judged = await this.#judge(id);
    await this.#delete();
    return { ...judged, states, shown: this.#shown };
  }

  /** A project holds fewer fleets than there are cases. A fleet with an engine to resume is deleted after that. */
  async #delete(): Promise<void> {
    for (const until = Date.now() + PATIENCE_MS; ; ) {
      try {
        await this.#client.fleets.delete(this.#name);
        return;
      } catch (error) {
        if (!(error instanceof ApiRequestError) || error.status !== 409 || Date.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    }
  }

  async #begin() {
    const { mode } = this.#case;
    await this.#client.fleets.create({
      name: this.#name,
      update: { mode, adapter: "tuned", pause_s: PHASE_S, update_s: PHASE_S, resume_s: PHASE_S },
      replicas: this.#engines.map(({ base_url }, at) => ({ name: `gpu-${at}`, base_url, max_concurrent: 8 })),
    });
    return await this.#client.runs.create({
      kind: "training",
      ...{ environment: "wordle", environment_args: { max_guesses: 3 }, model: "policy", fleet: this.#name },
      ...{ group_size: 2, batch_size: { rollouts: 6 }, max_steps: STEPS, lead: 1, limits: { call_timeout_s: PHASE_S } },
      filters: { zero_variance: "keep" },
      trainer: { encoding: "jsonl" },
    });
  }

  /** The fleet, with its replicas in the order of the engines. */
  async #fleet(): Promise<FleetView> {
    const fleet = await this.#client.fleets.get(this.#name);
    return { ...fleet, replicas: fleet.replicas.toSorted((one, other) => one.name.localeCompare(other.name)) };
  }

  /** The engine that fails. */
  get #sick(): FakeVllm {
    const [engine] = this.#engines;
    if (engine === undefined) throw new Error("no engine");
    return engine;
  }

  /** Records what is shown, like an operator who polls often, and acts as the reporting party. */
  async #watch(): Promise<void> {
    for (let ready: number | null = null; !this.#over; ) {
      const fleet = await this.#fleet();
      const [sick] = fleet.replicas;
      this.#seen = fleet;
      if (sick?.state === "ready") {
        if (ready !== null && ready !== sick.since) this.#shown.push(`${WAS_OUT}: ${sick.since}`);
        ready = sick.since;
      }
      const line = `${sick?.state}: ${sick?.reason ?? ""}`;
      if (this.#shown.at(-1) !== line) this.#shown.push(line);
      if (this.#case.mode === "reported") await this.#mendReported(fleet);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #mendReported({ replicas, weights }: FleetView): Promise<void> {
    for (const [at, { state, name }] of replicas.entries()) {
      if (state === "stale" && (weights?.version ?? 0) > 0) await this.#sidecar(at, name, weights?.version ?? 0);
    }
  }

  /** A process next to the engine: it waits for the engine's calls to end no longer than necessary. */
  async #sidecar(at: number, replica: string, version: number): Promise<void> {
    const engine = this.#engines[at];
    if (engine === undefined) return;
    await this.#trainer.report("pending", { version, replica });
    engine.load(weightsNamed(version));
    // No prefix block of other weights may be read under a version's salt.
    engine.cache.clear();
    engine.label = String(version);
    await this.#trainer.report("applied", { version, replica });
  }

  async #train(): Promise<void> {
    const { at } = this.#case.fault;
    for (let step = 1; step <= STEPS; step += 1) {
      const leased = await this.#leased();
      for (const bytes of (await this.#trainer.read(leased)).objects) this.#rows.push(...decodeRows(bytes, "jsonl"));
      if (step === STEPS) await this.#until(step - 1);
      if (step === 1 && at === "update") this.#strike();
      await this.#trainer.ack(leased);
      await this.#publish(step);
      if (step === 1 && at === "idle") await this.#strikeIdle();
    }
  }

  async #leased() {
    for (;;) {
      const leased = await this.#trainer.lease({ max_wait_s: 5 });
      if (leased !== null) return leased;
    }
  }

  async #publish(version: number): Promise<void> {
    this.#trainer.checkpoint.version = version;
    await this.#trainer.report("published", { location: weightsNamed(version) });
    if (this.#case.mode !== "reported") return;
    for (const [at] of this.#engines.entries()) await this.#sidecar(at, `gpu-${at}`, version);
  }

  #strike(): void {
    const { fault, mode } = this.#case;
    this.#shown.length = 0;
    fault.strike(this.#sick, mode);
    this.#state = "struck";
  }

  /** Strikes while nothing is being updated, and returns once the engine has healed. */
  async #strikeIdle(): Promise<void> {
    await this.#until(1);
    // Times are shown in whole seconds, so any later change is visible only in the next second.
    await this.#pass(() => Date.now() > 1000 * ((this.#seen?.replicas[0]?.since ?? 0) + 1));
    this.#strike();
    await this.#pass(() => this.#state === "healed");
  }

  async #strikeAndHeal(): Promise<void> {
    const { fault, mode } = this.#case;
    const { shown } = fault;
    await this.#pass(() => this.#state === "struck");
    const since = Date.now();
    if (shown === null) await this.#pass(() => Date.now() - since >= UNSEEN_MS);
    else {
      await this.#shownBy(isOut, "as out", since + OUT_WITHIN_MS);
      // On a busy machine the replica may first be out for another reason.
      await this.#shownBy((line) => shown.test(line), `as ${shown}`, since + PATIENCE_MS);
    }
    fault.heal(this.#sick, mode);
    this.#state = "healed";
  }

  #shownBy(is: (line: string) => boolean, what: string, until: number): Promise<void> {
    return this.#pass(() => {
      if (Date.now() > until) throw new Error(`it was not shown ${what}:\n${this.#shown.join("\n")}`);
      return this.#shown.some(is);
    });
  }

  /** Waits until the condition holds, or the case is over. */
  async #pass(is: () => boolean): Promise<void> {
    while (!this.#over && !is()) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }

  /** Waits until both replicas are ready with the version. */
  async #until(version: number): Promise<void> {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      const replicas = this.#seen?.replicas ?? [];
      if (replicas.length > 0 && replicas.every((one) => one.state === "ready" && one.version === version)) return;
      const standing = replicas.map(({ state, reason, version: has }) => `${state} ${has}: ${reason}`).join("; ");
      if (Date.now() > until) throw new Error(`not both ready with ${version}: ${standing}\n${this.#shown.join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #judge(id: string): Promise<Omit<Played, "states" | "shown">> {
    let run = await this.#client.runs.get(id);
    for (const until = Date.now() + PATIENCE_MS; run.finished_at === null && Date.now() < until; ) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      run = await this.#client.runs.get(id);
    }
    for (
      const until = Date.now() + 20_000;
      this.#engines.some(({ paused }) => paused !== null) && Date.now() < until;
    ) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    const { planned, pending, dispatched, in_flight, scored, unscored, failed, cancelled } = run.counts;
    const ends = [unscored, failed, cancelled].flatMap((by) => Object.values(by));
    const ended = ends.reduce((sum, count) => sum + count, scored);
    const { violations } = await this.#client.runs.audit(id);
    return {
      status: run.status,
      lost: Math.abs(planned - pending - dispatched) + Math.abs(dispatched - ended) + in_flight,
      violations,
      paused: this.#engines.map(({ paused }) => paused),
      wrong: this.#rows.flatMap(wrongIn),
      stale_prefixes: this.#engines.flatMap(({ calls }) => calls.filter((call) => call.stale_prefix)).length,
      samples: this.#rows.length,
    };
  }
}

function weightsNamed(version: number): string {
  return `/weights/${version}`;
}

/** Tokens of a sample whose weights, as their logprobs show, are not those of their version. */
function wrongIn({ sample_id, mask, logprobs, weight_versions = [] }: SampleRow): string[] {
  return weight_versions.flatMap(({ version, start, end }) => {
    const by = Array.from(logprobs.slice(start, end)).filter((_, at) => mask[start + at] === 1);
    const known = version === 0 ? "v0" : weightsNamed(version);
    const others = new Set(by.map((one) => weightsOf(one)).filter((one) => one !== known));
    return [...others].map((other) => `${sample_id}: told ${version}, sampled by ${other}`);
  });
}

export function isOut(line: string): boolean {
  return OUT.some((state) => line.startsWith(`${state}:`));
}
