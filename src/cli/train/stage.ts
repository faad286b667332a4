/** What every part of a training needs: where it happens, who trains, and what ends it. */
import { join } from "node:path";
import { startTrainerThatComesBack, type TrainerProcess } from "../../../packages/trainer/trainer-process.ts";

import type { Connection } from "../connect.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { TrainerChoice } from "./arguments.ts";

export interface Stage {
  readonly connection: Connection;
  readonly term: Terminal;
  /** Aborted when nothing more is to be done, for whatever reason. */
  readonly signal: AbortSignal;
  readonly trainer: TrainerChoice;
}

/** What the trainer learns by; kept with the run, so that it goes on as it began. */
export interface LearningSettings {
  readonly learningRate: number;
  /** How often each batch is trained on. */
  readonly passes: number;
  readonly loss: string;
  readonly seed: number;
}

/** Warms up at once, and comes back when it dies. */
export function embeddedTrainer(
  { connection, term }: { connection: Pick<Connection, "url">; term: Pick<Terminal, "say"> },
  policyUrl: string,
  settings: LearningSettings,
): TrainerProcess {
  return startTrainerThatComesBack({ url: connection.url, policyUrl, ...settings, say: term.say });
}

/** Where the embedded trainer keeps a run's weights. */
export function checkpointOf({ directory }: Connection, runId: string): string {
  return join(directory, "trainers", runId);
}
