/** One question, one answer: the environment has nothing to say, and is never asked. */
import { EnvError } from "../../contract/errors.ts";
import type { Messages } from "../../contract/messages.ts";
import { ENVIRONMENT_OPTIONS, type EnvironmentOptions } from "./environment.ts";
import { MultiTurnEnv } from "./multi-turn-env.ts";

export class SingleTurnEnv<Task> extends MultiTurnEnv<Task> {
  constructor(options: EnvironmentOptions<Task, object>) {
    super(options, { options: ENVIRONMENT_OPTIONS, monitors: [], maxTurns: 1 });
  }

  override envResponse(): Messages {
    throw new EnvError("a SingleTurnEnv makes no reply");
  }
}
