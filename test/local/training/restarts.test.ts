/** This package's trainer is killed: real processes, one platform. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TrainerProcess } from "@rollcall/trainer/trainer-process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { embeddedTrainer } from "../../../src/cli/train/begin.ts";
import { bootPlatform, type Platform } from "../../../src/local/platform.ts";
import { makeThrowAwayDirectory } from "../../../src/local/state-directory.ts";
import { RollcallClient } from "../../../src/sdk/client.ts";
import { WAIT_HANGS_MS } from "../../hang-limits.ts";
import { until } from "../served-platform.ts";
import { testPort } from "../test-port.ts";
import { calculator, ended } from "./training-runs.ts";

let platform: Platform;
const checkpoints = makeThrowAwayDirectory();

beforeAll(async () => {
  platform = await bootPlatform({
    directory: null,
    port: testPort(0),
    log: (line) => process.stderr.write(`${line}\n`),
  });
});
afterAll(async () => {
  await platform.stop();
  rmSync(checkpoints, { recursive: true });
});

function start(said: string[]): TrainerProcess {
  const how = { learningRate: 5e-4, passes: 1, loss: "dppo", seed: 0 };
  const term = { log: (line: string) => void said.push(line) };
  return embeddedTrainer({ connection: platform, term }, platform.policyUrl, how);
}

function pidOf({ pid }: TrainerProcess): number {
  if (pid === undefined) throw new Error("the trainer was not started");
  return pid;
}

test("a killed trainer is restarted, continues from its checkpoint, and the run ends as requested", async () => {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const { id, trainer } = await client.runs.create({
    ...calculator(platform.policyUrl),
    ...{ group_size: 4, batch_size: { rollouts: 8 }, max_steps: 3 },
    filters: { zero_variance: "keep" as const },
  });
  const said: string[] = [];
  const kept = start(said);
  const checkpoint = join(checkpoints, id);
  kept.train({ run_id: id, token: trainer?.token ?? "", checkpoint });
  await until(() => existsSync(join(checkpoint, "checkpoint.bin")), WAIT_HANGS_MS);
  process.kill(pidOf(kept), "SIGKILL");
  expect(await ended(client, id)).toMatchObject({
    status: "completed",
    training: { steps_trained: 3, batches: { acked: 3 } },
  });
  expect(await kept.exited).toMatchObject({ code: 0 });
  expect(said).toContain("The trainer was killed by SIGKILL; it is started again from its checkpoint (1 of 3).");
});

test("the fourth death is the last, and a stopped trainer stays stopped", async () => {
  const said: string[] = [];
  const dying = start(said);
  for (let deaths = 0; deaths < 4; deaths += 1) {
    const pid = pidOf(dying);
    process.kill(pid, "SIGKILL");
    if (deaths < 3) await until(() => dying.pid !== pid, WAIT_HANGS_MS);
  }
  expect(await dying.exited).toMatchObject({ code: null, signal: "SIGKILL" });
  expect(said.filter((line) => line.startsWith("The trainer was killed"))).toHaveLength(3);

  const stopped = start(said);
  await stopped.stop();
  expect(said).toHaveLength(3);
});
