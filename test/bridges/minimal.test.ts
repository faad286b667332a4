/**
 * The trainer of examples/trainers/minimal on a real platform: it learns, with exact logprobs, and continues after a
 * kill.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeThrowAwayDirectory } from "../../src/local/state-directory.ts";
import { plainEnvironment } from "../local/in-a-folder.ts";
import { deathOf, endGroup, type Served, serve } from "../local/served-platform.ts";
import { testPort } from "../local/test-port.ts";
import { clientOf } from "../local/training/training-runs.ts";
import { pythonVenv } from "../python/python-venv.ts";

const TRAINER = resolve(import.meta.dirname, "../../examples/trainers/minimal/trainer.py");
const STEPS = 20;
const directory = makeThrowAwayDirectory();
const folder = mkdtempSync(join(tmpdir(), "rollcall-minimal-"));
const checkpoint = join(folder, "checkpoint.json");
let served: Served | null = null;
let trainer: ChildProcess | null = null;

afterAll(async () => {
  trainer?.kill("SIGKILL");
  if (served !== null) {
    endGroup(served);
    await deathOf(served.workerd);
  }
  rmSync(directory, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

interface Step {
  readonly step: number;
  readonly reward: number;
  readonly ratio: number;
  readonly kl: number;
}

/** Resolves with the trainer's exit code; `heard` is called with each step. */
async function train(python: string, { url, key }: Served, heard: (step: Step) => void): Promise<number | null> {
  const child = spawn(python, [TRAINER, url, key, String(STEPS), checkpoint], {
    env: plainEnvironment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  trainer = child;
  let rest = "";
  child.stdout.on("data", (part) => {
    const lines = `${rest}${part}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) heard(JSON.parse(line));
  });
  const [code] = await once(child, "close");
  return code;
}

test("from a quarter of the reward to most of it, exact at the first step, with a kill on the way", async ({
  skip,
}) => {
  const requirements = join(import.meta.dirname, "requirements.txt");
  const { python } = (await pythonVenv("bridges", requirements, "ROLLCALL_BRIDGES_VENV")) ?? skip();
  served = await serve(directory, testPort(20));
  const steps: Step[] = [];
  await train(python, served, (step) => {
    steps.push(step);
    if (step.step === 6) trainer?.kill("SIGKILL");
  });
  expect(await train(python, served, (step) => steps.push(step))).toBe(0);

  const [first] = steps;
  expect(Math.abs((first?.ratio ?? 0) - 1)).toBeLessThan(1e-6);
  expect(Math.abs(first?.kl ?? 1)).toBeLessThan(1e-9);
  const numbers = steps.map(({ step }) => step);
  expect(new Set(numbers).size).toBe(numbers.length);
  const { run } = JSON.parse(readFileSync(checkpoint, "utf8"));
  const view = await clientOf(served).runs.get(run);
  expect([view.status, view.training?.steps_trained]).toEqual(["completed", STEPS]);
  const mean = (of: readonly Step[]) => of.reduce((sum, { reward }) => sum + reward, 0) / of.length;
  expect(mean(steps.slice(0, 3))).toBeLessThan(0.45);
  expect(mean(steps.slice(-3))).toBeGreaterThan(0.65);
});
