/** The questions to judges in a validation, and the judgements that each of them may have. */
import { seededWords } from "../../contract/random.ts";
import type { EnvironmentDescription } from "../protocol/environment-code.ts";
import type { JudgeAnswers } from "../rollout/play.ts";
import type { JudgementValue, Menu } from "../rubrics/judgement.ts";
import type { JudgeAsk, JudgeResult } from "../rubrics/judges.ts";

/** Up to so many combinations all are scored; else each judgement alone, among the best and among the worst. */
const MOST_COMBINATIONS = 64;
/** Judgements of one question. Of more labels the first ones are played, and the last. */
const MOST_JUDGEMENTS = 30;
/** Questions of one play whose judgements vary. */
const MOST_QUESTIONS = 20;
/** Replies to a question whose reply the environment reads itself, if it declares none. */
const USUAL_WORDS = ["no", "yes", "incorrect", "correct", "false", "true", "C", "B", "A", "0", "1", "5", "10", "100"];
/** A reply that is no judgement. */
const NO_JUDGEMENT = "I cannot say.";
export const NO_JUDGE = "the validation gives no judgement here";
const SHOWN_CHARACTERS = 60;

interface Judgement {
  readonly text: string;
  readonly value: JudgementValue;
}

/** A question of one play. */
export interface Question {
  readonly judge: string;
  readonly kind: Menu["kind"];
  /** Its judgements, cut for the report. */
  readonly texts: readonly string[];
  /** The judgements are usual words, and not those of the environment. */
  readonly isGuessed: boolean;
  /** Equal for the same question of another play. */
  readonly form: string;
}

type Questions = readonly (readonly [id: string, question: Question])[];

/** The index of a judgement for each question, by id; the last one for those that are left out. */
export type Answers = ReadonlyMap<string, number>;
/** Instead of an index: a reply that is no judgement, and no reply at all. */
export const UNREADABLE = -1;
export const NO_REPLY = -2;

/** Answers to judges before it is known which are better: by convention labels are listed worst first. */
export function usualAnswer({ judgements = {} }: EnvironmentDescription, end: "best" | "worst"): JudgeAnswers {
  return (ask) => {
    const all = judgementsOf(ask, judgements[ask.judge] ?? null);
    return given(all.at(end === "best" ? -1 : 0));
  };
}

/** The judges that are asked about one scoring group. It keeps no text of a question: there may be many, and long. */
export class Panel {
  /** The first questions, by an id that is the same for each pass of a question: their judgements vary. */
  readonly questions = new Map<string, Question>();
  /** Whether some judgements are never played. */
  leftOut = false;
  readonly #description: EnvironmentDescription;

  constructor(description: EnvironmentDescription) {
    this.#description = description;
  }

  answer(ask: JudgeAsk, answers: Answers): JudgeResult {
    const declared = this.#description.judgements?.[ask.judge] ?? null;
    const judgements = judgementsOf(ask, declared);
    const id = idOf(ask);
    if (!this.questions.has(id)) this.#add(id, ask, judgements, declared === null);
    const index = answers.get(id) ?? judgements.length - 1;
    if (index === UNREADABLE && ask.menu.kind === "text") return { value: NO_JUDGEMENT, reason: null };
    return given(judgements[index]);
  }

  #add(id: string, { judge, menu }: JudgeAsk, judgements: readonly Judgement[], isUndeclared: boolean): void {
    if (menu.kind === "label" && menu.labels.length > judgements.length) this.leftOut = true;
    if (this.questions.size >= MOST_QUESTIONS) {
      this.leftOut = true;
      return;
    }
    const { kind } = menu;
    const texts = judgements.map(({ text }) => text);
    const alike = [...this.questions.values()].filter((other) => other.judge === judge && other.kind === kind);
    const form = JSON.stringify([judge, kind, texts, alike.length]);
    this.questions.set(id, { judge, kind, texts, isGuessed: kind === "text" && isUndeclared, form });
  }
}

function idOf({ judge, messages, menu, sampling }: JudgeAsk): string {
  const word = seededWords("question", JSON.stringify([judge, messages, menu, sampling]));
  return [word(), word(), word(), word()].join("-");
}

function given(judgement: Judgement | undefined): JudgeResult {
  if (judgement === undefined) return { value: null, error: NO_JUDGE, retryable: false };
  return { value: judgement.value, reason: null };
}

/** The possible judgements of a question, the worst first. */
function judgementsOf({ menu }: JudgeAsk, declared: readonly string[] | null): readonly Judgement[] {
  switch (menu.kind) {
    case "label": {
      const { labels } = menu;
      const some =
        labels.length <= MOST_JUDGEMENTS ? labels : [...labels.slice(0, MOST_JUDGEMENTS - 1), ...labels.slice(-1)];
      return some.map(asJudgement);
    }
    case "text":
      return (declared ?? USUAL_WORDS).slice(0, MOST_JUDGEMENTS).map(asJudgement);
    case "number":
      return inRange(menu.range).map((value) => ({ text: String(value), value }));
    case "cosine":
      return inRange([0, 1]).map((value) => ({ text: String(value), value }));
    case "scores":
      return inRange(menu.range).map((score) => ({
        text: `${score} for all`,
        value: Object.fromEntries(menu.ids.map((id) => [id, score])),
      }));
  }
}

function asJudgement(text: string): Judgement {
  return { text: text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`, value: text };
}

function inRange([least, most]: readonly [number, number]): readonly number[] {
  return [...new Set([least, (least + most) / 2, most])];
}

export function combinationsOf(questions: Questions): readonly Answers[] {
  const count = questions.reduce((product, [, { texts }]) => product * texts.length, 1);
  if (count <= MOST_COMBINATIONS) {
    return questions.reduce<Answers[]>(
      (all, [id, { texts }]) => all.flatMap((answers) => texts.map((_, at) => withAnswer(answers, id, at, texts))),
      [new Map()],
    );
  }
  const ends = endsOf(questions);
  const alone = questions.flatMap(([id, { texts }]) =>
    texts.flatMap((_, at) => ends.map((answers) => withAnswer(answers, id, at, texts))),
  );
  return [...ends, ...alone];
}

/** All best judgements, and all worst. */
export function endsOf(questions: Questions): readonly Answers[] {
  const worst = questions.filter(([, { texts }]) => texts.length > 1).map(([id]) => [id, 0] as const);
  return [new Map(), new Map(worst)];
}

/** The last judgement is left out, so that equal answers are equal maps. */
function withAnswer(answers: Answers, id: string, at: number, texts: readonly string[]): Answers {
  const others = [...answers].filter(([other]) => other !== id);
  return new Map(at === texts.length - 1 ? others : [...others, [id, at]]);
}
