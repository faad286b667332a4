import { dataset, MultiTurnEnv, type RolloutFields } from "rollcall";
import { runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const rows = dataset(z.object({ question: z.string() }), "uploaded");
const task = { question: "q" };

test("hooks see the progress of a rollout, and closing hooks and scoring how it ended", async () => {
  const seen: unknown[] = [];
  const look = ({ is_truncated, stop_condition, error, usage }: RolloutFields<unknown>) =>
    void seen.push([is_truncated, stop_condition, error?.error ?? null, usage]);
  const environment = new MultiTurnEnv({
    dataset: rows,
    maxTurns: 2,
    envResponse: (_messages, state) => {
      look(state);
      if (state.task.question === "fail") throw new RangeError("no seats");
      return "go on";
    },
    postRollout: look,
    cleanup: { look },
    rubric: {
      metrics: {
        seen: ({ state }) => {
          look(state);
          return 0;
        },
      },
    },
  });
  const long = { content: "a", finish_reason: "length" } as const;
  const counted = { content: "b", usage: { prompt_tokens: 5, completion_tokens: 2 } };
  await runRollout(environment, { task, model: scripted([long, counted]) });
  const ended = [true, "max_turns_reached", null, { input_tokens: 5, output_tokens: 2 }];
  expect(seen).toEqual([[false, null, null, null], ended, ended, ended]);
  seen.length = 0;
  await runRollout(environment, { task: { question: "fail" }, model: scripted([counted]) });
  const failed = [false, "has_error", "EnvError", { input_tokens: 5, output_tokens: 2 }];
  expect(seen.slice(1)).toEqual([failed, failed]);
});
