/**
 * Computes the graders' scores of one rollout.
 *
 * Invariants. The sample is the model's reply without its thoughts, as OpenAI's graders get it. A score that cannot be
 * computed is an error, never 0. A grader is computed once per rollout and pass: its metrics read the result of its
 * score. In a `multi` grader judges are asked first, all together, and external scorers last: a pass with a missing
 * judgement runs again, and calls no external scorer before that.
 */
import {
  type Json,
  parseDigits,
  pauseWork,
  type RewardArgs,
  scorers,
  spendWork,
  textOf,
  withoutThoughts,
} from "rollcall";
import { parseFormula } from "./formula.ts";
import { EMBEDDING_JUDGE, type Grader, type GraderPart, type JudgedPart, judgeOf, partsOf } from "./graders.ts";
import { httpScore } from "./http-scorer.ts";
import { renderMessages } from "./messages.ts";
import { blankSimilarity, similarity } from "./similarity.ts";
import { type Names, render, type Sample } from "./template.ts";

export type Item = Readonly<Record<string, Json>>;
export type Args = RewardArgs<Item, object>;
export type Grade = (args: Args) => Promise<number>;

export interface Grades {
  readonly whole: Grade;
  /** The parts of a `multi` grader, by name. */
  readonly parts: ReadonlyMap<string, Grade>;
}

export function gradesOf(grader: Grader): Grades {
  if (grader.type !== "multi") {
    return { whole: once((args) => gradePart(grader, args)), parts: new Map() };
  }
  const graders = partsOf(grader);
  const parts = new Map(graders.map((part) => [part.name, once((args) => gradePart(part, args))]));
  const whole = once(async (args) => {
    const values = await valuesOf(graders, parts, args);
    return parseFormula(grader.calculate_output).evaluate(values);
  });
  return { whole, parts };
}

async function valuesOf(
  graders: readonly GraderPart[],
  grades: ReadonlyMap<string, Grade>,
  args: Args,
): Promise<Map<string, number>> {
  const judged = (part: GraderPart) => judgeOf(part) !== null;
  const http = (part: GraderPart) => part.type === "http";
  const waves = [graders.filter(judged), graders.filter((part) => !judged(part) && !http(part)), graders.filter(http)];
  const values = new Map<string, number>();
  for (const wave of waves) {
    const begun: (readonly [name: string, score: Promise<number> | undefined])[] = [];
    for (const { name } of wave) {
      const score = grades.get(name)?.(args);
      // A rejection is thrown below, once all parts have started.
      score?.catch(() => undefined);
      begun.push([name, score]);
      await pauseWork(args);
    }
    for (const [name, score] of begun) values.set(name, (await score) ?? Number.NaN);
  }
  return values;
}

async function gradePart(grader: GraderPart, args: Args): Promise<number> {
  const names = { item: args.task, sample: sampleOf(args), spend: (steps: number) => spendFilling(args, steps) };
  switch (grader.type) {
    case "string_check":
      return checkString(grader, args, names) ? 1 : 0;
    case "text_similarity":
      return await gradeSimilarity(grader, args, names);
    case "scorer": {
      const { scorer, input, reference, options } = grader;
      return scorers[scorer].score(render(input, names), render(reference, names), options, args);
    }
    case "label_model": {
      const { model, input, labels, passing_labels } = grader;
      const options = { judge: model, labels, sampling: samplingOf(grader) };
      const label = await args.judge(renderMessages(input, names), options);
      return passing_labels.includes(label) ? 1 : 0;
    }
    case "score_model": {
      const { model, input, range } = grader;
      const options = {
        judge: model,
        range: range ?? [0, 1],
        sampling: samplingOf(grader),
      } as const;
      return await args.judge(renderMessages(input, names), options);
    }
    case "http":
      return await httpScore(grader, args, names);
  }
}

async function gradeSimilarity(
  grader: Extract<GraderPart, { type: "text_similarity" }>,
  args: Args,
  names: Names,
): Promise<number> {
  const { evaluation_metric } = grader;
  const texts = [render(grader.input, names), render(grader.reference, names)] as const;
  if (evaluation_metric !== "cosine") return similarity(evaluation_metric, ...texts, args);
  return blankSimilarity(...texts) ?? (await args.judge(texts, { judge: EMBEDDING_JUDGE, cosine: true }));
}

/** Pairs of characters per step, for a search of one text in another. */
const PAIRS = 12_500;

function checkString(
  { operation, input, reference }: Extract<GraderPart, { type: "string_check" }>,
  args: Args,
  names: Names,
): boolean {
  const [text, wanted] = [render(input, names), render(reference, names)];
  const lengths = `${wanted.length} characters in ${text.length}`;
  spendWork(args, (text.length * wanted.length) / PAIRS, `looking for ${lengths}`);
  switch (operation) {
    case "eq":
      return text === wanted;
    case "ne":
      return text !== wanted;
    case "like":
      return text.includes(wanted);
    case "ilike":
      return text.toLowerCase().includes(wanted.toLowerCase());
  }
}

/** OpenAI has two names for the token limit; null fields are left out. */
function samplingOf({ sampling_params }: JudgedPart) {
  const { max_completions_tokens, ...others } = sampling_params ?? {};
  const given = { max_completion_tokens: max_completions_tokens, ...others };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value != null));
}

const samples = new WeakMap<object, Sample>();

/** Made once per pass over a rollout, because it may have megabytes. */
function sampleOf(args: Args): Sample {
  const sample = samples.get(args.state) ?? makeSample(args);
  samples.set(args.state, sample);
  return sample;
}

/** Steps per character that is parsed as JSON, measured: lists of numbers past 2^53 are the slowest. */
const STEPS_OF_JSON = 8;

function makeSample(args: Args): Sample {
  const { completion } = args;
  const message = completion.findLast(({ role }) => role === "assistant");
  const text = withoutThoughts(textOf(message));
  const calls = message?.tool_calls ?? [];
  const tools = calls.map(({ id, type, function: { name, arguments: given } }) => {
    return { id, type, function: { name, arguments: given } };
  });
  let json: Json | undefined;
  return {
    output_text: text,
    get output_json() {
      if (json === undefined) {
        spendWork(args, text.length * STEPS_OF_JSON, `reading ${text.length} characters as JSON`);
        json = jsonOf(text);
      }
      return json;
    },
    output_tools: tools,
    choices: [{ message: { role: "assistant", content: text, tool_calls: tools } }],
  };
}

function spendFilling(args: Args, steps: number): void {
  spendWork(args, steps, "filling in a template");
}

function jsonOf(text: string): Json {
  try {
    return parseDigits(text) as Json;
  } catch {
    return null;
  }
}

/** The state is made again for each pass over a rollout, and all functions of the pass share it. */
function once(grade: Grade): Grade {
  const known = new WeakMap<object, Promise<number>>();
  return (args) => {
    const found = known.get(args.state) ?? grade(args);
    known.set(args.state, found);
    return found;
  };
}
