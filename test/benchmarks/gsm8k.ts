/** GSM8K against `strict-match` and `flexible-extract` of lm-eval, with its own prompts and numbers. */
import { loadEnvironment } from "../../environments/gsm8k/environment.ts";
import { type Answer, type Benchmark, type Draw, generate, scoresOf } from "./benchmark.ts";

/** A problem with a whole answer, and what a reply may be made of. */
function problem(draw: Draw) {
  const [each, count, extra] = [draw.whole(3, 90), draw.whole(12, 60), draw.whole(2, 9)];
  const right = each * count;
  const question = `A farm sells ${count} boxes of ${each} eggs and keeps ${extra}. How many eggs does it sell?`;
  const steps = `Each of the ${count} boxes holds ${each} eggs.\nThat is ${count} * ${each} = <<${count}*${each}=${right}>>${right}.`;
  return {
    row: { question, answer: `${steps}\n#### ${withCommas(right)}` },
    right,
    wrong: right + extra,
    steps,
    extra,
  };
}
type Problem = ReturnType<typeof problem>;

function withCommas(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

function reply(write: (about: Problem) => string): (draw: Draw) => Omit<Answer, "kind"> {
  return (draw) => {
    const about = problem(draw);
    return { row: about.row, reply: write(about) };
  };
}

const KINDS = {
  hashes: reply(({ steps, right }) => `${steps}\n#### ${right}`),
  "hashes, wrong": reply(({ steps, wrong }) => `${steps}\n#### ${wrong}`),
  "hashes with commas": reply(({ steps, right }) => `${steps}\n#### ${withCommas(right)}`),
  "hashes with a dollar": reply(({ steps, right }) => `${steps}\n#### $${right}`),
  "hashes with a point at the end": reply(({ steps, right }) => `${steps}\n#### ${right}.`),
  "hashes with decimals": reply(({ steps, right }) => `${steps}\n#### ${right}.00`),
  "hashes with a unit": reply(({ steps, right }) => `${steps}\n#### ${right} eggs`),
  "hashes and then a remark": reply(({ steps, right, extra }) => `${steps}\n#### ${right}\nIt keeps ${extra} more.`),
  "hashes twice": reply(({ right, wrong }) => `#### ${wrong}\nNo, I forgot some.\n#### ${right}`),
  "hashes, negative": reply(({ right }) => `#### -${right}`),
  box: reply(({ steps, right }) => `${steps}\nThe answer is \\boxed{${right}}.`),
  "box, wrong": reply(({ steps, wrong }) => `${steps}\nThe answer is \\boxed{${wrong}}.`),
  "box with a unit": reply(({ right }) => `\\boxed{${right}\\text{ eggs}}`),
  "box with LaTeX's comma": reply(({ right }) => `\\boxed{${withCommas(right).replace(",", "{,}")}}`),
  "box, then a check": reply(({ right, extra }) => `\\boxed{${right}}. Check: it keeps ${extra}.`),
  sentence: reply(({ right }) => `The farm sells ${withCommas(right)} eggs.`),
  "sentence, wrong": reply(({ wrong }) => `The farm sells ${wrong} eggs.`),
  "sentence with a later number": reply(({ right, extra }) => `It sells ${right} eggs by keeping ${extra}.`),
  "sentence in bold": reply(({ right }) => `So the farm sells **${right}** eggs. I hope this helps!`),
  "stated answer": reply(({ steps, right }) => `${steps}\n\nAnswer: ${right}`),
  "tagged answer": reply(({ right }) => `<answer>${right}</answer>`),
  "number alone": reply(({ right }) => `${right}`),
  money: reply(({ right }) => `It earns $${withCommas(right)}.00.`),
  refusal: reply(() => "I cannot solve this problem."),
  empty: reply(() => ""),
  "two candidates": reply(({ right, wrong }) => `It is ${right} or ${wrong}.`),
  "right number only in the steps": reply(({ steps, wrong }) => `${steps} So the answer is ${wrong}.`),
  "denied number": reply(({ right, wrong }) => `It is ${wrong}, not ${right}.`),
  fraction: reply(({ right }) => `\\boxed{\\frac{${2 * right}}{2}}`),
  "thought, then the answer": reply(({ right, wrong }) => `<think>Perhaps #### ${wrong}</think>#### ${right}`),
  "only a thought": reply(({ right }) => `<think>It is #### ${right}</think>`),
  "full-width digits": reply(
    ({ right }) => `#### ${String(right).replace(/\d/g, (d) => "０１２３４５６７８９"[Number(d)] ?? "")}`,
  ),
  percent: reply(({ right }) => `\\boxed{${right}\\%}`),
};

const [finalNumber, strict, flexible] = await Promise.all(
  ["final_number", "strict_match", "flexible_extract"].map((scoring) => loadEnvironment.load({ scoring })),
);

const THOUGHTS = "the thoughts of a reasoning model are not its answer: they are removed first";

export const GSM8K: Benchmark = {
  name: "gsm8k",
  answers: generate(231, 1, KINDS),
  score: async (answer) => {
    const [ours, strictly, flexibly] = [finalNumber, strict, flexible].map((it) => it && scoresOf(it, answer));
    return {
      final_number: (await ours)?.reward === 1,
      strict_match: (await strictly)?.reward === 1,
      flexible_extract: (await flexibly)?.reward === 1,
    };
  },
  deviations: {
    "final_number: hashes with decimals": "zeros after the decimal point make no difference: 18.00 is 18",
    "final_number: hashes and then a remark": "the text after #### is the answer, whatever numbers come later",
    "final_number: box with LaTeX's comma": "a number is read as it is typeset: 1{,}600 is 1600",
    "final_number: box, then a check": "the box is the answer, whatever numbers come later",
    "final_number: sentence with a later number": "the subject of the last sentence is the answer, not its last number",
    "final_number: money": "zeros after the decimal point make no difference: $18.00 is 18",
    "final_number: denied number": "a number after `not` is not the answer",
    "final_number: fraction": "a fraction is evaluated: 36/2 is 18",
    "final_number: only a thought": THOUGHTS,
    "final_number: full-width digits": "full-width digits are digits",
    "strict_match: thought, then the answer": THOUGHTS,
    "strict_match: only a thought": THOUGHTS,
    "flexible_extract: only a thought": THOUGHTS,
  },
};
