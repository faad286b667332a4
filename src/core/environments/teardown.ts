/** Retires an instance of an environment: nothing is built or played with it any more. */
import { asEnvError, type SerializedError, serializeError } from "../../contract/errors.ts";
import type { AnyEnvironment, PlayedEnvironment } from "./any-environment.ts";
import { type CleanupHandler, inOrder } from "./stops.ts";

/** Runs its teardown handlers, those of its rubrics included, whatever fails; returns what did. */
export async function tearDown(environment: AnyEnvironment): Promise<SerializedError[]> {
  const faults: SerializedError[] = [];
  for (const { name, run } of environment.players.flatMap(handlersOf)) {
    try {
      await run();
    } catch (thrown) {
      faults.push(serializeError(asEnvError(thrown, `teardown ${name}`)));
    }
  }
  return faults;
}

/** Whether anything is to be done for it when it is retired. */
export function holdsSomething({ players }: AnyEnvironment): boolean {
  return players.some((player) => handlersOf(player).length > 0);
}

function handlersOf({ teardownHandlers, rubric }: PlayedEnvironment): CleanupHandler<void>[] {
  return [...teardownHandlers, ...rubric.teardownHandlers].sort(inOrder);
}
