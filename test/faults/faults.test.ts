/** `npm run faults` as a program: its output for a plan that holds and for one that does not, and its refusals. */
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { type Outcome, runIn } from "../local/in-a-folder.ts";
import { testPort } from "../local/test-port.ts";
import type { PlanReport } from "./plan-report.ts";

const ONE = ["--plans", "1"];
const ROOT = resolve(import.meta.dirname, "../..");
const MAIN = join(import.meta.dirname, "main.ts");

function faults(...args: readonly string[]): Promise<Outcome> {
  return runIn(ROOT, [process.execPath, MAIN, "--json", ...args]);
}

function read({ stdout }: Outcome): { plans: PlanReport[]; failed: number } {
  return JSON.parse(stdout);
}

test("a plan of kills, lost messages, a failing model and a failing judge ends like the calm run", async () => {
  const outcome = await faults(...ONE, "--seed", "4998", "--rollouts", "20", "--port", String(testPort(0)));
  expect(outcome.code, outcome.stderr).toBe(0);
  const { plans, failed } = read(outcome);
  expect(plans.flatMap(({ violations }) => violations)).toEqual([]);
  expect(failed).toBe(0);
  expect(plans[0]).toMatchObject({ seed: 4998, ok: true, rollouts: 20, answered: 20 });
  expect(plans[0]?.faults.kills).toBeGreaterThan(0);
  expect(plans[0]?.judge_calls).toBeGreaterThan(0);
  expect(plans[0]?.tokens_recorded).toBe(plans[0]?.tokens_stored);
});

test("a plan of two organisations in two D1 databases, which fail, holds for both", async () => {
  const two = [
    "--databases",
    "2",
    "--tenants",
    "2",
    "--seed",
    "4998",
    "--rollouts",
    "12",
    "--port",
    String(testPort(37)),
  ];
  const outcome = await faults(...ONE, ...two);
  expect(outcome.code, outcome.stderr).toBe(0);
  const { plans } = read(outcome);
  expect(plans.flatMap(({ violations }) => violations)).toEqual([]);
  // The organisations of the last time that the plan was played.
  expect(plans.slice(-2).map(({ databases, ok }) => [databases, ok])).toEqual([
    [2, true],
    [2, true],
  ]);
  expect(plans[0]?.faults.kills).toBeGreaterThan(0);
});

test("a paid plan with environments in isolates of their own, which get lost, holds, with half replies charged", async () => {
  const isolated = ["--isolated", "--billing", "--seed", "13", "--rollouts", "20", "--port", String(testPort(50))];
  const outcome = await faults(...ONE, ...isolated);
  expect(outcome.code, outcome.stderr).toBe(0);
  const [plan] = read(outcome).plans;
  expect(plan?.violations).toEqual([]);
  expect(plan).toMatchObject({ ok: true, isolated: true, answered: 20 });
  expect(plan?.faults.isolates_lost).toBeGreaterThan(0);
});

test("with every message lost and no reconciliation the plan fails, and so does the command", async () => {
  const sabotage = ["--sabotage", "--rollouts", "8", "--ends-within", "2"];
  const outcome = await faults(...ONE, ...sabotage, "--port", String(testPort(25)));
  expect(outcome.code, outcome.stderr).toBe(1);
  const { plans, failed } = read(outcome);
  expect(failed).toBe(1);
  expect(plans[0]?.violations.map(({ rule }) => rule)).toContain("ended");
});

test.each([
  [["--plans", "many"], "--plans"],
  [["--plan", "9"], "there are 5 plans"],
  [["--turns", "7"], "--turns: at most 6"],
])("%j is refused", async (args, message) => {
  const { code, stdout } = await faults(...args);
  expect(code).toBe(2);
  expect(JSON.parse(stdout).error.message).toContain(message);
});
