/** Replies to multiple-choice questions: the letter in many forms, right and wrong, and forms without a letter. */
import type { Answer, Draw } from "./benchmark.ts";

const WORDS = [
  "a tide of 3.2 metres",
  "the keel",
  "Salt, water",
  "It depends on the wind",
  "rope",
  "a long rope",
  "12 knots",
] as const;

function question(draw: Draw, count: number) {
  const options = Array.from(
    { length: count },
    (_, at) => `${WORDS[at % WORDS.length]}${at < WORDS.length ? "" : ` ${at}`}`,
  );
  const right = draw.whole(0, count - 1);
  // Half of the replies name another option.
  const said = draw.whole(0, 1) === 0 ? right : (right + 1) % count;
  const row = {
    question: `Which of them lifts boat ${draw.whole(1, 99)}?`,
    options,
    answer: letter(right),
    category: "physics",
  };
  return { row, said: letter(said), other: letter((said + 2) % count), option: options[said] ?? "" };
}

function letter(at: number): string {
  return "ABCDEFGHIJ"[at] ?? "";
}

type Asked = ReturnType<typeof question>;

const REPLIES: Readonly<Record<string, (asked: Asked) => string>> = {
  "the answer is (X)": ({ said }) => `It floats. So the answer is (${said}).`,
  "the answer is X": ({ said }) => `The tide rises, so the answer is ${said}.`,
  "The answer is (X)": ({ said }) => `The answer is (${said}).`,
  "the answer in bold": ({ said }) => `The answer is **${said}**.`,
  "the answer in a box": ({ said }) => `The answer is $\\boxed{${said}}$.`,
  "a box alone": ({ said }) => `\\boxed{${said}}`,
  "Answer: X": ({ said }) => `Let us see.\nAnswer: ${said}`,
  "a letter alone": ({ said }) => said,
  "a letter in brackets": ({ said }) => `(${said})`,
  "a letter with its option": ({ said, option }) => `${said}. ${option}`,
  "a lower-case letter": ({ said }) => `the answer is (${said.toLowerCase()})`,
  "the option alone": ({ option }) => `It must be ${option}.`,
  "two answers, then one": ({ said, other }) =>
    `First I thought the answer is (${other}). But no: the answer is (${said}).`,
  "options are weighed": ({ said, other }) => `(${other}) is too heavy. (${said}) floats. The answer is (${said}).`,
  "a later remark": ({ said, other }) => `The answer is (${said}), and not (${other}).`,
  "a letter in the middle": ({ said }) => `I would choose option ${said} here.`,
  "two letters": ({ said, other }) => `The answer is ${said} or ${other}.`,
  "a refusal": () => "I cannot answer this question.",
  nothing: () => "",
  "a thought first": ({ said, other }) => `<think>the answer is (${other})</think>The answer is (${said}).`,
  "a thought only": ({ said }) => `<think>The answer is (${said}).</think>`,
  "a denied letter": ({ other, said }) => `The answer is not (${other}). It is (${said}).`,
  "an explanation after": ({ said }) => `The answer is (${said}). This is because of buoyancy (Archimedes).`,
  "a letter that does not exist": () => "The answer is (Z).",
  "the correct answer": ({ said }) => `The correct answer is ${said}.`,
};

export function letterKinds(count: (draw: Draw) => number) {
  return Object.fromEntries(
    Object.entries(REPLIES).map(([kind, write]) => [
      kind,
      (draw: Draw): Omit<Answer, "kind"> => {
        const asked = question(draw, count(draw));
        return { row: asked.row, reply: write(asked) };
      },
    ]),
  );
}
