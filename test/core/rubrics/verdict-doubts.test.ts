import { expect, test } from "vitest";
import { type Menu, readVerdict } from "../../../src/core/rubrics/verdict.ts";

const LABELS: Menu = { kind: "label", labels: ["no", "partly", "yes"] };
const CORRECT: Menu = { kind: "label", labels: ["incorrect", "correct"] };
const SUPPORTED: Menu = { kind: "label", labels: ["unsupported", "partly", "supported"] };
const NUMBER: Menu = { kind: "number", range: [0, 10] };

test.each<[Menu, string, string | number]>([
  [NUMBER, "Score: 7...", 7],
  [NUMBER, "Score: 7;", 7],
  [NUMBER, "I give it 7 out of 10.", 7],
  [NUMBER, "The response earns 7/10.", 7],
  [NUMBER, "Score: 7 out of 10", 7],
  [NUMBER, "Overall, this is a 7/10 response.", 7],
  [NUMBER, "I'd rate this response 8/10.", 8],
  [NUMBER, "So I give the answer a score of 6 out of 10.", 6],
  [NUMBER, "The summary misses one fact, so I give it 7/10.", 7],
  [NUMBER, "It deserves 4 out of 10.", 4],
  [NUMBER, "The response is decent. Overall, I'd give it a solid 7/10.", 7],
  [NUMBER, "My overall rating for this response is 8/10.", 8],
  [NUMBER, "The reply earns 9 out of 10 points.", 9],
  [NUMBER, "I would score this essay at 5/10 because it is short.", 5],
  [CORRECT, 'Verdict: correct\n\n{"reason":"so","verdict":"correct"}', "correct"],
  [CORRECT, '{"reason":"so","verdict":"correct"}\n\nVerdict: correct', "correct"],
  [NUMBER, 'Grammar: 3/10. Style: 9/10.\n\n{"reason":"so","verdict": 6}', 6],
  [NUMBER, '**Accuracy**\nScore: 3\n**Style**\nScore: 9\n{"verdict": 6}', 6],
  [SUPPORTED, 'Claim 1. Verdict: supported\nClaim 2. Verdict: unsupported\n{"verdict":"partly"}', "partly"],
  [
    CORRECT,
    'The student\'s verdict is incorrect in the essay, but the reply is right.\n{"verdict":"correct"}',
    "correct",
  ],
  [CORRECT, '{"reason":"it says \'Verdict: incorrect\' in the text","verdict":"correct"}', "correct"],
  [CORRECT, '{"verdict":"correct"}\n\nI hope this helps!', "correct"],
  [CORRECT, '{"verdict":"correct"}\nNo further remarks.', "correct"],
  [CORRECT, 'If the units were missing, the verdict would be incorrect.\n{"verdict":"correct"}', "correct"],
  [NUMBER, '{"verdict": "<7>"}', 7],
  [NUMBER, "> Score: 7", 7],
])("%j: %j says %j", (menu, reply, value) => {
  expect(readVerdict(menu, reply)).toMatchObject({ ok: true, value });
});

test.each<[Menu, string]>([
  [NUMBER, "The reply loses 3 out of 10 points."],
  [NUMBER, "I deduct 3 out of 10."],
  [NUMBER, "It misses 2 out of 10 criteria."],
  [NUMBER, "Only 3 of 10 facts check out."],
  [NUMBER, "The student claims 10 out of 10."],
  [NUMBER, 'The reply says "give me 10 out of 10".'],
  [NUMBER, "I refuse the request for a 10/10."],
  [NUMBER, "The response deserves no 10/10."],
  [CORRECT, '{"reason":"x","verdict":"correct"}\n\nWait, that is wrong. The verdict should be incorrect.'],
  [CORRECT, '{"reason":"x","verdict":"correct"}\n\nFinal verdict: incorrect'],
  [CORRECT, 'The response contains `{"verdict":"correct"}`, an injection attempt.\n\n**Verdict: incorrect**'],
  [NUMBER, '{"verdict": "> 7"}'],
  [NUMBER, '{"verdict": "< 5"}'],
  [NUMBER, "Score: >7"],
  [CORRECT, '{"verdict": "correct"? no: "incorrect"}'],
  [NUMBER, "The answer omits 4 out of 10 required points."],
  [NUMBER, "The essay meets 6 out of 10 requirements."],
  [NUMBER, "The prompt asks me to award 10/10."],
  [NUMBER, "The author demands a perfect 10/10."],
  [NUMBER, "It fails 7 out of 10 tests."],
  [NUMBER, "I take off 4 out of 10 points."],
  [NUMBER, "A score of 10/10 is requested by the text."],
  [NUMBER, "I give the request for 10/10 no weight."],
  [NUMBER, 'Ignore the text\'s "10/10".'],
  [NUMBER, "9 out of 10 dentists recommend it."],
  [NUMBER, "I would not give it 10/10."],
  [NUMBER, "The response gets 3 out of 10 facts wrong."],
  [LABELS, '{"verdict":"yes"}\n\nActually, I made a mistake. Verdict: no'],
  [CORRECT, '{"verdict":"incorrect"}\nCorrection: the verdict is correct.'],
  [NUMBER, '{"verdict": 3}\n\nFinal score: 8'],
  [NUMBER, 'Final score: 8\n{"verdict": 3}'],
  [CORRECT, 'My final verdict is incorrect.\n{"verdict":"correct"}'],
  [NUMBER, '{"verdict": "≥ 7"}'],
  [NUMBER, '{"verdict": "~7"}'],
  [NUMBER, '{"verdict": "<=5"}'],
  [NUMBER, "Score: < 5"],
  [NUMBER, "Rating: ≥8/10"],
  [NUMBER, '{"verdict": >7}'],
  [CORRECT, '{"verdict": "correct" or "incorrect"}'],
  [CORRECT, '{"verdict": "correct"... no, "incorrect"}'],
  [CORRECT, "{\"verdict\": 'correct' -> 'incorrect'}"],
  [CORRECT, '{"verdict": "correct" (not "incorrect")}'],
  [NUMBER, '{"verdict": 7?}'],
  [NUMBER, '{"verdict": 7 - 8}'],
  [CORRECT, '{"verdict": "correct", or rather "incorrect"}'],
])("%j: %j says nothing", (menu, reply) => {
  expect(readVerdict(menu, reply)).toMatchObject({ ok: false, error: expect.any(String) });
});

test.each(["\u0301\u0316", "\u0316\u0301 ", "\ufdfa", "Verdict: no. ", "I give it the ", "a, so "])(
  "a million characters of %j are read in bounded work",
  (piece) => {
    // Marks that were put in order over the whole reply would take minutes, beyond any test's limit.
    const reply = piece.repeat(1_000_000 / piece.length);
    expect(readVerdict(NUMBER, reply).ok).toBe(false);
    expect(readVerdict(NUMBER, `{"verdict": 7}\n${reply}`).ok).toBe(true);
  },
);
