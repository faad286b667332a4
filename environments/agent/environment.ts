/** Rows of any form, for an agent that plays them and reports its own rewards. */
import { dataset, defineEnvironment, type JsonObject, type Messages, SingleTurnEnv } from "rollcall";
import * as z from "zod";

class AgentTasks extends SingleTurnEnv<JsonObject> {
  /** A row without `prompt` and `question` has no messages: the agent makes its own. */
  override makePrompt({ prompt, question }: JsonObject): Messages | null {
    return prompt === undefined && question === undefined ? [] : null;
  }
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({}),
  build: () => new AgentTasks({ dataset: dataset(z.record(z.string(), z.json()), "uploaded"), rubric: {} }),
});
