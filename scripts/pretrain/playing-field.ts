/** Loads the environments of the demo with their demonstrators once, and plays single rollouts in them. */

import { KNOWN_ENVIRONMENTS } from "@rollcall/policy/known-environments";
import { ENVIRONMENTS } from "../../environments/registered.ts";
import { type Message, textOf } from "../../src/contract/messages.ts";
import type { AnyEnvironment } from "../../src/core/environments/any-environment.ts";
import { rowAt } from "../../src/core/rollout/task.ts";
import { type RolloutReport, runRollout, type TestModel } from "../../src/core/testing.ts";
import { DEMONSTRATORS, type Demonstrator } from "./demonstrators.ts";

export interface Field {
  readonly id: string;
  readonly environment: AnyEnvironment;
  readonly demonstrator: Demonstrator;
}

export async function loadFields(): Promise<Field[]> {
  return Promise.all(
    KNOWN_ENVIRONMENTS.map(async ({ environment: id, environment_args }) => {
      const registered = ENVIRONMENTS.find((candidate) => candidate.id === id);
      const demonstrator = DEMONSTRATORS[id];
      if (registered === undefined) throw new Error(`no environment named ${id} is registered`);
      if (demonstrator === undefined) throw new Error(`${id} has no demonstrator`);
      return { id, environment: await registered.load(environment_args), demonstrator };
    }),
  );
}

export interface Play {
  readonly report: RolloutReport;
  /** The whole conversation, including the prompt. */
  readonly messages: readonly Message[];
}

/** Plays example `index` of the dataset with this seed to its end. Throws if the rollout failed. */
export async function play(environment: AnyEnvironment, index: number, seed: number, model: TestModel): Promise<Play> {
  let prompt: readonly Message[] = [];
  const report = await runRollout(environment, {
    task: rowAt(environment.dataset, index, seed),
    seed: seed * 1_000_003 + index,
    model: (request) => {
      if (request.turn === 0) prompt = request.messages;
      return model(request);
    },
  });
  if (report.error !== null) throw new Error(`rollout ${index} failed: ${report.error.message}`);
  return { report, messages: [...prompt, ...report.completion] };
}

/** A message in the form of the chat template: this policy reads only text. */
export function templateMessage(message: Message) {
  return { ...message, content: textOf(message) };
}
