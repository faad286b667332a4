/** The positions of a trajectory's parts, found in its bytes as they arrive. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../src/contract/random.ts";
import { locateTurns } from "../../../src/kernel/trajectory/locate-turns.ts";

/** Everything that a scanner of JSON may misread. */
const TEXTS = ['"', "\\", '\\"', "]},{[", "\\\\", "a\nb", "ü😀", '{"turns":[1,2]}', "\\".repeat(7), ""];

function trajectoryOf(turns: readonly object[]) {
  return { schema: 1, task: { turns: [1, [2]], "q\\": '"' }, turns, completion: [[], {}], answer: "}", started_at: 5 };
}

/** The bytes in pieces of these sizes, repeated. */
function inPieces(text: string, sizes: readonly number[]): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  return new ReadableStream({
    start(controller) {
      for (let [at, n] = [0, 0]; at < bytes.length; n += 1) {
        const size = sizes[n % sizes.length] ?? 1;
        controller.enqueue(bytes.subarray(at, at + size));
        at += size;
      }
      controller.close();
    },
  });
}

function slice(text: string, from: number, to: number): string {
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(from, to));
}

test("every turn and every member is found, however the bytes are cut and whatever the texts hold", async () => {
  const random = seededRandom("places of turns");
  for (let round = 0; round < 60; round += 1) {
    const texts = () => Array.from({ length: 3 }, () => TEXTS[Math.floor(random() * TEXTS.length)]);
    const turns = Array.from({ length: round % 5 }, (_, index) => ({ index, said: texts(), n: [{}, []] }));
    const trajectory = trajectoryOf(turns);
    const text = JSON.stringify(trajectory);
    const sizes = Array.from({ length: 4 }, () => 1 + Math.floor(random() * 9));
    const found = await locateTurns(inPieces(text, sizes), "");
    if (typeof found === "string") throw new Error(found);
    const read = turns.map((_, at) => slice(text, found.starts[at] ?? 0, (found.starts[at + 1] ?? 0) - 1));
    expect(read.map((one): unknown => JSON.parse(one))).toEqual(turns);
    expect(found.starts).toHaveLength(turns.length === 0 ? 0 : turns.length + 1);
    const members = [...found.members.values()].map(({ from, to }) => slice(text, from, to));
    expect(JSON.parse(`{${members.join(",")}}`)).toEqual(trajectory);
  }
});

test("a line of a segment is found by its beginning, and one without a trajectory is empty", async () => {
  const lineOf = (id: string, trajectory: object | null) => JSON.stringify({ rollout_id: id, trajectory });
  const before = (id: string) => `{"rollout_id":"${id}","trajectory":`;
  const turns = [{ said: before("ro_2") }];
  const text = [lineOf("ro_11", trajectoryOf([])), lineOf("ro_1", null), lineOf("ro_2", trajectoryOf(turns))].join(
    "\n",
  );
  for (const size of [1, 3, 50, 10_000]) {
    const found = await locateTurns(inPieces(text, [size]), before("ro_2"));
    if (typeof found === "string") throw new Error(found);
    expect(JSON.parse(slice(text, found.starts[0] ?? 0, (found.starts[1] ?? 0) - 1))).toEqual(turns[0]);
    expect(await locateTurns(inPieces(text, [size]), before("ro_1"))).toBe("empty");
    expect(await locateTurns(inPieces(text, [size]), before("ro_3"))).toBe("missing");
    expect(await locateTurns(inPieces(text.slice(0, -40), [size]), before("ro_2"))).toBe("missing");
  }
});
