/** The questions to judges in a validation, and the judgements that each of them may have. */
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
  readonly menu: Menu;
  readonly judgements: readonly Judgement[];
  /** The judgements are usual words, and not those of the environment. */
  readonly isGuessed: boolean;
  /** Equal for the same question of another play. */
  readonly form: string;
}

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

/** The judges that are asked about one scoring group. */
export class Panel {
  /** By an id that is the same for each pass of a question. */
  readonly questions = new Map<string, Question>();
  readonly #description: EnvironmentDescription;

  constructor(description: EnvironmentDescription) {
    this.#description = description;
  }

  /** The questions whose judgements vary. */
  get varied(): readonly (readonly [string, Question])[] {
    return [...this.questions].slice(0, MOST_QUESTIONS);
  }

  /** Whether some judgements are never played. */
  get leftOut(): boolean {
    const isLong = ({ menu }: Question) => menu.kind === "label" && menu.labels.length > MOST_JUDGEMENTS;
    return this.questions.size > MOST_QUESTIONS || [...this.questions.values()].some(isLong);
  }

  answer(ask: JudgeAsk, answers: Answers): JudgeResult {
    const id = JSON.stringify([ask.judge, ask.messages, ask.menu, ask.sampling]);
    const question = this.questions.get(id) ?? this.#add(id, ask);
    const index = answers.get(id) ?? question.judgements.length - 1;
    if (index === UNREADABLE && question.menu.kind === "text") return { value: NO_JUDGEMENT, reason: null };
    return given(question.judgements[index]);
  }

  #add(id: string, ask: JudgeAsk): Question {
    const { judge, menu } = ask;
    const declared = this.#description.judgements?.[judge] ?? null;
    const judgements = judgementsOf(ask, declared);
    const texts = judgements.map(({ text }) => text);
    const alike = [...this.questions.values()].filter(
      (other) => other.judge === judge && other.menu.kind === menu.kind,
    );
    const form = JSON.stringify([judge, menu.kind, texts, alike.length]);
    const isGuessed = menu.kind === "text" && declared === null;
    const question = { judge, menu, judgements, isGuessed, form };
    this.questions.set(id, question);
    return question;
  }
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

export function combinationsOf(questions: readonly (readonly [string, Question])[]): readonly Answers[] {
  const count = questions.reduce((product, [, { judgements }]) => product * judgements.length, 1);
  if (count <= MOST_COMBINATIONS) {
    return questions.reduce<Answers[]>(
      (all, [id, { judgements }]) =>
        all.flatMap((answers) => judgements.map((_, at) => withAnswer(answers, id, at, judgements))),
      [new Map()],
    );
  }
  const ends = endsOf(questions);
  const alone = questions.flatMap(([id, { judgements }]) =>
    judgements.flatMap((_, at) => ends.map((answers) => withAnswer(answers, id, at, judgements))),
  );
  return [...ends, ...alone];
}

/** All best judgements, and all worst. */
export function endsOf(questions: readonly (readonly [string, Question])[]): readonly Answers[] {
  const worst = questions.filter(([, { judgements }]) => judgements.length > 1).map(([id]) => [id, 0] as const);
  return [new Map(), new Map(worst)];
}

/** The last judgement is left out, so that equal answers are equal maps. */
function withAnswer(answers: Answers, id: string, at: number, judgements: readonly Judgement[]): Answers {
  const others = [...answers].filter(([other]) => other !== id);
  return new Map(at === judgements.length - 1 ? others : [...others, [id, at]]);
}
