/** How a training is played to its end, or left, against a platform that answers from a list. */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { terminal } from "../../src/cli/terminal/terminal.ts";
import type { Begun } from "../../src/cli/train/begin.ts";
import { playTraining, type Training } from "../../src/cli/train/play.ts";
import type { RunView } from "../../src/contract/run.ts";
import { RollcallClient } from "../../src/sdk/client.ts";
import { aRun } from "./a-run.ts";
import { aTraining, aTrainingRun } from "./a-training.ts";
import { Window } from "./a-window.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const EVAL = aRun({}, { id: "run_2", status: "completed" });

/** A training of somebody else's trainer on a platform elsewhere. `onEval`: an eval was asked for. */
function aTrainingOf(run: RunView, interrupt: AbortSignal, onEval: () => void) {
  const url = "http://platform.test";
  const client = new RollcallClient({
    baseUrl: url,
    fetch: async (input, init) => {
      const request = new Request(input, init);
      const { pathname } = new URL(request.url);
      if (request.method === "POST") onEval();
      if (pathname.endsWith("/metrics")) return Response.json({ object: "list", data: [], has_more: false });
      if (pathname.endsWith("/events")) {
        const headers = { "content-type": "text/event-stream" };
        return new Response("id: 1\nevent: run.completed\ndata: {}\n\n", { headers });
      }
      return Response.json(pathname === `/v1/runs/${run.id}` ? run : EVAL);
    },
  });
  const stderr = new Window(false);
  const training: Training = {
    connection: {
      ...{ client, inProject: () => client, url, key: "rk_1", policyUrl: null, directory: "", profile: null },
      ...{ flags: " --platform http://platform.test", project: undefined, kind: "remote", environment: null },
      ...{ lost: new Promise<Error>(() => undefined), close: async () => undefined },
    },
    term: terminal(false, { stdout: new Window(false), stderr, env: {}, on: () => undefined }),
    ends: { interrupt, timeout: null },
    trainer: { kind: "push", url: "http://me.test" },
    again: "npx rollcall train --trainer push:http://me.test --track wandb",
  };
  const begun: Begun = { run, before: null, evaluation: { environment: "calculator", model: "m" }, token: null };
  return { training, begin: async () => begun, stderr };
}

test("an interrupted training prints the command that follows it, with its trainer and its tracker", async () => {
  const { training, begin } = aTrainingOf(aTrainingRun(), AbortSignal.abort(), () => undefined);
  await expect(playTraining(training, null, begin)).rejects.toThrow(
    `follow it with: npx rollcall train --trainer push:http://me.test --track wandb --resume ${aTrainingRun().id} --platform http://platform.test`,
  );
});

test("the eval after a training does not wait for the tracker", async () => {
  const python = join(temporaryDirectory(), "python");
  // It ends once the eval has begun.
  writeFileSync(python, '#!/bin/sh\nwhile [ ! -e "$0.eval" ]; do sleep 0.05; done\nexit 3\n');
  chmodSync(python, 0o755);
  const training = aTraining({ published: 12, applied: { min: 12, max: 12, by_replica: {} } });
  const run = aTrainingRun({ status: "completed", training });
  const played = aTrainingOf(run, new AbortController().signal, () => writeFileSync(`${python}.eval`, ""));
  const tracker = { python, project: undefined };
  const { after } = await playTraining({ ...played.training, tracker }, null, played.begin);
  expect(after).toEqual(EVAL);
  expect(played.stderr.taken()).toContain(
    `${run.id} was not sent completely: exit code 3. Continue with: npx rollcall train --trainer push:http://me.test --track wandb --resume ${run.id} --platform`,
  );
});
