import { dataset, SingleTurnEnv } from "rollcall";
import { expect, test } from "vitest";
import * as z from "zod";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import { taskOfGroup } from "../../../src/kernel/dataset/datasets.ts";

const Row = z.looseObject({ question: z.string() });
const environment = codeOf(new SingleTurnEnv({ dataset: dataset(Row, "uploaded"), rubric: {} }));
const spec = { dataset: { kind: "uploaded", key: "rows", length: 8 }, shuffle: false, seed: 0 } as const;

async function played(text: string, row = 0): Promise<unknown> {
  return (await taskOfGroup(spec, environment, row, new Map([[row, text]]))).row;
}

test.each([
  ['{"question":"q","answer":9007199254740993}', "rows[0].answer"],
  ['{"question":"q","answer":9.007199254740993e15}', "rows[0].answer"],
  ['{"question":"q","ids":[1,{"of":-12345678901234567890123}]}', "rows[0].ids[1].of"],
  ['{"question":"q","far":1e400}', "rows[0].far"],
  ['{"question":"q","answer":"1","answer":"2"}', "rows[0].answer"],
  ['{"question":"q","info":{"a":1,"a":1}}', "rows[0].info.a"],
])(
  "a stored row with inexact numbers, from before they were refused, is an error and not played with others: %s",
  async (text, path) => {
    await expect(played(text)).rejects.toThrow(expect.objectContaining({ name: "RowError", path }));
  },
);

test("a stored row whose numbers are exact is played as it was written", async () => {
  const text = '{"question":"q","ids":[9007199254740994,1e+22,0.1,-9007199254740991]}';
  expect(JSON.stringify(await played(text, 3))).toBe(
    '{"question":"q","ids":[9007199254740994,1e+22,0.1,-9007199254740991]}',
  );
});
