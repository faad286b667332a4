/** Which messages of a batch the consumers handle at once. */
import { expect, test } from "vitest";
import type { RunMessage } from "../../../src/kernel/messages/wire.ts";
import { partOf, sideBySide } from "../../../src/kernel/service/side-by-side.ts";

const OF = { scope: { orgId: "org", projectId: "pj" }, run_id: "run" } as const;
const atOnce = (...messages: readonly RunMessage[]) => sideBySide(messages.map(partOf));

function starts(rollouts: number): RunMessage {
  const places = Array.from({ length: rollouts }, (_, slot) => [0, slot, 0] as const);
  return { kind: "groups", ...OF, sent_at: 0, rollouts: places };
}

test("six starts are handled at once if the batch names at most 25 rollouts, else one", () => {
  expect(atOnce(...Array.from({ length: 10 }, () => starts(2)))).toBe(6);
  expect(atOnce(starts(25))).toBe(6);
  expect(atOnce(starts(25), starts(1))).toBe(1);
});

test("six judgements are made at once if their scoring groups have at most 72 rollouts, else one", () => {
  const judgement = (members: number): RunMessage => ({ kind: "judgement", ...OF, unit: 0, members });
  expect(atOnce(...Array.from({ length: 6 }, () => judgement(12)))).toBe(6);
  expect(atOnce(judgement(72), judgement(1))).toBe(1);
});

test("scores are computed one after another, even if there are few", () => {
  expect(atOnce({ kind: "scores", ...OF, units: [1] })).toBe(1);
});
