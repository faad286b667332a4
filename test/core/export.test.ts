import { expect, test } from "vitest";
import { dpoRow, ExportQuery, pairsOf, sftRow } from "../../src/core/export.ts";
import type { Messages } from "../../src/core/messages.ts";
import type { Trajectory } from "../../src/core/trajectory.ts";
import { finishedTrajectory } from "../fixtures/finished-trajectory.ts";

const ORIGIN = { run_id: "run_1", environment: "gsm8k@1.0.0", model: "m" };

function worth(reward: number, more: Partial<Trajectory> = {}) {
  return { reward, trajectory: finishedTrajectory(more) };
}

const members = (...rewards: number[]) =>
  rewards.map((reward, at) => ({ reward, said: `words ${at}`, at }));
const places = (of: ReturnType<typeof members>) =>
  pairsOf(of).map(([chosen, rejected]) => [chosen.at, rejected.at]);

test("the best is paired with the worst, the second best with the second worst, while they differ", () => {
  expect(places(members(3, 2, 1, 0))).toEqual([
    [0, 3],
    [1, 2],
  ]);
  expect(places(members(3, 2, 1))).toEqual([[0, 2]]);
  expect(places(members(1, 1, 0, 0))).toEqual([
    [0, 3],
    [1, 2],
  ]);
  expect(places(members(1, 1, 1, 0))).toEqual([[0, 3]]);
  expect(places(members(1, 1))).toEqual([]);
  expect(places(members(1))).toEqual([]);
  expect(places([])).toEqual([]);
});

test("two that say the same are no pair; of those before words were recorded nobody knows", () => {
  const same = members(1, 0).map((member) => ({ ...member, said: "a" }));
  expect(pairsOf(same)).toEqual([]);
  const older = members(1, 0).map((member) => ({ ...member, said: null }));
  expect(pairsOf(older).length).toBe(1);
});

test("a bare text is what a user said, tools stand beside the messages, and nothing else is changed", () => {
  const tool = {
    type: "function",
    function: { name: "f", description: "", parameters: {} },
  } as const;
  const completion: Messages = [
    { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [call("f")] },
    { role: "tool", tool_call_id: "c", content: "4" },
  ];
  const row = sftRow(
    ORIGIN,
    worth(1, { prompt: [{ role: "text", content: "hi" }], completion, tools: [tool] }),
  );
  expect(row).toMatchObject({ ...ORIGIN, reward: 1, tools: [tool] });
  expect(row.messages).toEqual([{ role: "user", content: "hi" }, ...completion]);
  expect(sftRow(ORIGIN, worth(1))).not.toHaveProperty("tools");
});

function call(name: string) {
  return { id: "c", type: "function", function: { name, arguments: "{}" } } as const;
}

test("there is no pair of two that do not begin alike", () => {
  const other = worth(0, { prompt: [{ role: "user", content: "another" }] });
  expect(dpoRow(ORIGIN, worth(1), other)).toBeNull();
  expect(dpoRow(ORIGIN, worth(1), worth(0))).toMatchObject({
    chosen_reward: 1,
    rejected_reward: 0,
  });
});

test("flags of a query are the words true and false", () => {
  const query = ExportQuery.parse({ dedupe: "true", best_of_group: "false" });
  expect(query).toMatchObject({ format: "sft", dedupe: true, best_of_group: false, limit: 1000 });
  expect(ExportQuery.safeParse({ dedupe: "1" }).success).toBe(false);
});
