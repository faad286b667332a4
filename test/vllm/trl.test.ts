/**
 * TRL's AsyncGRPOTrainer with examples/trainers/trl, on a fleet in which a real vLLM loads each step's weights from a
 * path. A second run follows on the same engine, which has the weights that the first one left.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { freePort } from "../../src/local/ports.ts";
import { testPort } from "../local/test-port.ts";
import { pythonVenv } from "../python/python-venv.ts";
import { type Engine, KEY, PROCESSED, startEngine } from "./engine.ts";
import type { Vllm } from "./global-setup.ts";
import { Stand } from "./stand.ts";

const TRAINER = resolve(import.meta.dirname, "../../examples/trainers/trl/trainer.py");
const REQUIREMENTS = resolve(import.meta.dirname, "../trl/requirements.txt");
const STEPS = 3;
const vllm = inject("vllm");

interface Step {
  readonly step: number;
  readonly ratio: number;
  readonly kl: number;
}

describe.skipIf(vllm === null)("TRL on a fleet of a real vLLM", () => {
  let [engine, stand, python]: [Engine, Stand, string | null] = [] as never;

  beforeAll(async () => {
    if (vllm === null) return;
    python = (await pythonVenv("trl", REQUIREMENTS, "ROLLCALL_TRL_VENV"))?.python ?? null;
    engine = await startEngine(vllm, await freePort(testPort(11)), PROCESSED);
    stand = await Stand.start(vllm, testPort(1));
  });
  afterAll(async () => {
    await stand?.stop();
    await engine?.stop();
  });

  /** TRL's report of each step of a run in which no rollout failed. */
  async function train(fleet: string, { model, folder }: Vllm): Promise<readonly Step[]> {
    const { endpoint: _, ...request } = stand.request({ play: "once", temperature: 1, endpoint: "", steps: STEPS });
    const { id, trainer } = await stand.client.runs.create({ ...request, fleet, lead: 1, max_off_policy_steps: 2 });
    const given = { url: stand.url, run: id, model, weights: join(folder, id), steps: STEPS, rows: 19 };
    const flags = Object.entries({ ...given, "learning-rate": 3e-4 }).flatMap(([name, is]) => [
      `--${name}`,
      String(is),
    ]);
    const child = spawn(python ?? "", [TRAINER, ...flags], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, HF_HUB_OFFLINE: "1", ROLLCALL_TRAINER_TOKEN: trainer?.token ?? "" },
    });
    let said = "";
    child.stdout.on("data", (part) => {
      said += part;
    });
    const [code] = await once(child, "close");
    expect(code, said).toBe(0);
    expect(await failuresOf(id)).toEqual([]);
    return said.split("\n").flatMap((line) => (line.startsWith('{"step"') ? [JSON.parse(line)] : []));
  }

  async function failuresOf(run: string): Promise<readonly object[]> {
    const failures: object[] = [];
    for await (const { event, data } of stand.client.runs.events(run)) {
      if (event !== "rollout.finished" || data.outcome !== "failed") continue;
      const { error, failed_calls } = await stand.client.rollouts.get(data.rollout_id);
      failures.push({ ...data, error, failed_calls });
    }
    return failures;
  }

  test("its first step has ratio 1 and KL 0, and so has a run that starts with other weights on the engine", async ({
    skip,
  }) => {
    if (vllm === null || python === null) return skip();
    for (const name of ["first", "second"]) {
      const replica = { name: "cpu-0", base_url: `${engine.url}/v1`, api_key: KEY };
      await stand.client.fleets.create({ name, update: { mode: "reload" }, replicas: [replica] });
      const steps = await train(name, vllm);
      expect(steps.map(({ step }) => step)).toEqual([1, 2, 3]);
      const [first] = steps;
      expect(Math.abs((first?.ratio ?? 0) - 1)).toBeLessThan(1e-5);
      expect(Math.abs(first?.kl ?? 1)).toBeLessThan(1e-6);
      // Probed again: the speed of its answer when it was attached depends on the machine.
      const { capabilities } = await stand.client.fleets.replicas.probe(name, "cpu-0");
      expect(capabilities).toMatchObject({ error: null, exactness: { refused: null } });
    }
  });
});
