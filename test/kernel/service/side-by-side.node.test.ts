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

test("the scores of six messages are computed at once if they have at most 25 rollouts, else of one", () => {
  const scores = (units: number, members: number): RunMessage => {
    return { kind: "scores", ...OF, units: Array.from({ length: units }, (_, unit) => unit), members };
  };
  expect(atOnce(...Array.from({ length: 10 }, () => scores(2, 1)))).toBe(6);
  expect(atOnce(scores(5, 5))).toBe(6);
  expect(atOnce(scores(5, 5), scores(1, 1))).toBe(1);
});

test("scores that are heavy, call services, or were sent by an earlier release are computed one after another", () => {
  const message = { kind: "scores", ...OF, units: [1] } as const;
  expect(atOnce(message)).toBe(1);
  expect(atOnce({ ...message, members: 1, heavy: true })).toBe(1);
});
