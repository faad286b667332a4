/** MMLU-Pro and GPQA against lm-eval: `custom-extract` of `mmlu_pro`, `flexible-extract` of `gpqa_*_cot_zeroshot`. */
import { loadEnvironment } from "../../environments/multiple-choice/environment.ts";
import { type Answer, type Benchmark, generate, scoresOf } from "./benchmark.ts";
import { letterKinds } from "./letters.ts";

async function scorerFor(style: string): Promise<Benchmark["score"]> {
  const environment = await loadEnvironment.load({ style, shuffle_seed: null });
  return async (answer: Answer) => {
    const { reward, metrics } = await scoresOf(environment, answer);
    return { correct_answer: reward === 1, reference_match: metrics["reference_match"] === 1 };
  };
}

const FORM = "the letter is found in every form in which models write it, not in one";
const LAST = "what the reply corrects or denies is not its answer";
const SEVERAL = "a reply that offers several letters chooses none";
const THOUGHTS = "the thoughts of a reasoning model are not its answer: they are removed first";

export const MMLU_PRO: Benchmark = {
  name: "mmlu-pro",
  answers: generate(
    200,
    10,
    letterKinds((draw) => draw.whole(3, 10)),
  ),
  score: await scorerFor("mmlu_pro"),
  deviations: {
    "correct_answer: the answer in bold": FORM,
    "correct_answer: the answer in a box": FORM,
    "correct_answer: a box alone": FORM,
    "correct_answer: Answer: X": FORM,
    "correct_answer: a letter alone": FORM,
    "correct_answer: a letter in brackets": FORM,
    "correct_answer: a letter with its option": FORM,
    "correct_answer: a lower-case letter": FORM,
    "correct_answer: a letter in the middle": FORM,
    "correct_answer: two answers, then one": LAST,
    "correct_answer: a denied letter": LAST,
    "correct_answer: two letters": SEVERAL,
    "correct_answer: a thought first": THOUGHTS,
    "correct_answer: a thought only": THOUGHTS,
    "reference_match: a thought first": THOUGHTS,
    "reference_match: a thought only": THOUGHTS,
  },
};

export const GPQA: Benchmark = {
  name: "gpqa",
  answers: generate(
    200,
    4,
    letterKinds(() => 4),
  ),
  score: await scorerFor("gpqa"),
  deviations: {
    "correct_answer: the answer is X": FORM,
    "correct_answer: the correct answer": FORM,
    "correct_answer: the answer in bold": FORM,
    "correct_answer: the answer in a box": FORM,
    "correct_answer: a box alone": FORM,
    "correct_answer: a letter alone": FORM,
    "correct_answer: a lower-case letter": FORM,
    "correct_answer: a letter in the middle": FORM,
    "correct_answer: the option alone": "an option without its letter is no choice: options may occur in the reasoning",
    "correct_answer: a later remark": LAST,
    "correct_answer: a thought only": THOUGHTS,
    "reference_match: a thought only": THOUGHTS,
  },
};
