/**
 * Plays the judges of an environment: scores its plays with each possible judgement, as if a judge had answered so.
 *
 * Invariants. The possible judgements follow from the question: its labels, its range, or, if the environment reads the
 * reply itself, the replies that it declares. Without a declaration some usual words are tried, which proves nothing:
 * the result says so. Equal questions of several passes get equal judgements. Work is counted and bounded: what was
 * left out is a finding, too.
 */
import type { Trajectory } from "../../contract/trajectory.ts";
import type { EnvironmentDescription } from "../protocol/environment-code.ts";
import type { JudgeAnswers } from "../rollout/play.ts";
import type { ScoreRecord } from "../rubrics/score.ts";
import {
  type Answers,
  combinationsOf,
  endsOf,
  NO_JUDGE,
  NO_REPLY,
  Panel,
  type Question,
  UNREADABLE,
} from "./judge-questions.ts";

/** After so many scorings a play has only its best and its worst judgements. */
const MOST_SCORINGS = 500;
/** Questions in the report. */
const MOST_REPORTED = 64;

/** A judgement of a question, and the reward with it. */
export interface PlayedJudgement {
  readonly judge: string;
  /** Numbers the different questions of the validation, from 1. */
  readonly question: number;
  readonly judgement: string;
  /** The mean of the best rewards that were possible with it: of gold plays, or if there are none of all. */
  readonly reward: number | null;
  /** The first error of a function that gives no score with this judgement; null if there is none. */
  readonly error: string | null;
}

/** What is wrong with the judges; a sentence for each finding. */
export interface JudgeFindings {
  readonly played: readonly PlayedJudgement[];
  /** Judgements that give no score, and questions whose judgements change none. */
  readonly faults: readonly string[];
  /** Replies without a judgement that are scored all the same. */
  readonly swallowed: readonly string[];
  /** What could not be checked. */
  readonly unchecked: readonly string[];
}

interface Outcome {
  readonly answers: Answers;
  readonly records: readonly ScoreRecord[];
}

/** Null: a judgement is missing. */
type Scoring = (answers: Answers) => Promise<Outcome | null>;

interface FormResult {
  readonly judge: string;
  readonly judgements: readonly {
    readonly text: string;
    readonly gold: number[];
    readonly other: number[];
    error: string | null;
  }[];
  readonly isGuessed: boolean;
  /** A judgement changed a score. */
  changes: boolean;
  /** It was asked about a gold play. */
  hasGold: boolean;
  swallowed: string | null;
}

/** Scores members with these answers. */
export type ScoreAgain = (
  members: readonly Trajectory[],
  answer: JudgeAnswers,
) => Promise<readonly ScoreRecord[] | undefined>;

/** The record of a play with its best and its worst judgements, and all its rewards. */
export interface Judged {
  readonly best: ScoreRecord;
  readonly worst: ScoreRecord;
  readonly rewards: readonly number[];
}

/** The judges of one validation. */
export class JudgeBench {
  readonly #description: EnvironmentDescription;
  readonly #score: ScoreAgain;
  readonly #forms = new Map<string, FormResult>();
  /** Functions that give no score without a judgement whose replies were guessed. */
  readonly #excused = new Set<string>();
  #scorings = 0;
  #leftOut = false;

  constructor(description: EnvironmentDescription, score: ScoreAgain) {
    this.#description = description;
    this.#score = score;
  }

  /** Plays the judgements of a scoring group. Null for each member if no judge was asked or nothing could be scored. */
  async play(members: readonly Trajectory[], isGold: boolean): Promise<readonly (Judged | null)[]> {
    const panel = new Panel(this.#description);
    const outcomes = new Map<string, Outcome>();
    const score: Scoring = async (answers) => {
      const id = idOf(answers);
      const known = outcomes.get(id);
      if (known !== undefined) return known;
      this.#scorings += 1;
      const records = await this.#score(members, (ask) => panel.answer(ask, answers));
      if (records === undefined) return null;
      const outcome = { answers, records };
      outcomes.set(id, outcome);
      return outcome;
    };
    const isSpent = this.#scorings >= MOST_SCORINGS;
    // A judgement may be followed by another question.
    for (let asked = -1; asked < panel.questions.size; ) {
      asked = panel.questions.size;
      const all = isSpent ? endsOf([...panel.questions]) : combinationsOf([...panel.questions]);
      for (const answers of all) await score(answers);
    }
    if (panel.questions.size === 0) return members.map(() => null);
    const combined = [...outcomes.values()];
    const isNew = [...panel.questions.values()].some(({ form }) => !this.#forms.has(form));
    this.#leftOut ||= panel.leftOut || (isSpent && isNew);
    if (!isSpent) {
      await this.#playUnreadable(panel, score);
      await this.#excuseGuessed(panel, score);
      this.#record(panel, combined, isGold);
    }
    return members.map((_, at) => this.#judged(combined, at));
  }

  /** Plays replies that are no judgements: once for each form of a question. */
  async #playUnreadable(panel: Panel, score: Scoring): Promise<void> {
    for (const [id, question] of panel.questions) {
      if (this.#forms.has(question.form)) continue;
      const form = this.#formOf(question);
      const outcome = await score(new Map([[id, UNREADABLE]]));
      const [record] = outcome?.records ?? [];
      if (form === null || record === undefined || record.reward === null || record.scoring_errors.length > 0) continue;
      form.swallowed = `a reply of the judge ${question.judge} without a judgement has the reward ${record.reward}`;
    }
  }

  /** Finds the functions that need the replies whose possible texts were guessed. */
  async #excuseGuessed(panel: Panel, score: Scoring): Promise<void> {
    const guessed = [...panel.questions].filter(([, { isGuessed }]) => isGuessed);
    if (guessed.length === 0) return;
    const outcome = await score(new Map(guessed.map(([id]) => [id, NO_REPLY])));
    for (const { scoring_errors } of outcome?.records ?? []) {
      for (const { function: name, error } of scoring_errors) if (error.endsWith(NO_JUDGE)) this.#excused.add(name);
    }
  }

  #formOf({ form, judge, texts, isGuessed }: Question): FormResult | null {
    const known = this.#forms.get(form);
    if (known !== undefined) return known;
    if (this.#forms.size >= MOST_REPORTED) {
      this.#leftOut = true;
      return null;
    }
    const made: FormResult = {
      ...{ judge, isGuessed, changes: false, hasGold: false, swallowed: null },
      judgements: texts.map((text) => ({ text, gold: [], other: [], error: null })),
    };
    this.#forms.set(form, made);
    return made;
  }

  #record(panel: Panel, outcomes: readonly Outcome[], isGold: boolean): void {
    for (const [id, question] of panel.questions) {
      const form = this.#formOf(question);
      if (form === null) continue;
      const last = question.texts.length - 1;
      const chosen = ({ answers }: Outcome) => answers.get(id) ?? last;
      // Outcomes that differ in nothing but the judgement of this question.
      const alike = [...Map.groupBy(outcomes, ({ answers }) => idOf(answers, id)).values()];
      form.hasGold ||= isGold;
      form.changes ||= alike.some((same) => new Set(same.map(scoresOf)).size > 1);
      for (const [index, judgement] of form.judgements.entries()) {
        const having = outcomes.filter((outcome) => chosen(outcome) === index);
        const rewards = having.flatMap(({ records }) => meanOf(records) ?? []);
        if (rewards.length > 0) (isGold ? judgement.gold : judgement.other).push(Math.max(...rewards));
        for (const same of alike) judgement.error ??= ownError(same, (outcome) => chosen(outcome) === index);
      }
    }
  }

  #judged(outcomes: readonly Outcome[], at: number): Judged | null {
    const records = outcomes.flatMap(({ records: all }) => all[at] ?? []).map((record) => this.#excuse(record));
    const [first] = records;
    if (first === undefined) return null;
    const scored = records.filter(({ reward }) => reward !== null);
    const by = (better: (a: number, b: number) => boolean) =>
      scored.reduce((kept, next) => (better(next.reward ?? 0, kept.reward ?? 0) ? next : kept), scored[0] ?? first);
    return {
      best: by((a, b) => a > b),
      worst: by((a, b) => a < b),
      rewards: scored.flatMap(({ reward }) => reward ?? []),
    };
  }

  #excuse(record: ScoreRecord): ScoreRecord {
    return {
      ...record,
      scoring_errors: record.scoring_errors.filter(({ function: name }) => !this.#excused.has(name)),
    };
  }

  /** `isGoldSure`: gold plays solve their tasks, so a judgement that changes nothing there changes nothing anywhere. */
  findings(isGoldSure: boolean): JudgeFindings {
    const forms = [...this.#forms.values()];
    const asked = new Set(forms.map(({ judge }) => judge));
    const named = this.#description.judges;
    const guessed = new Set(forms.filter(({ isGuessed }) => isGuessed).map(({ judge }) => judge));
    const known = forms.filter(({ isGuessed }) => !isGuessed);
    const [ignored, unclear] = [true, false].map((isSure) =>
      known.filter((form) => isIgnored(form) && (isGoldSure && form.hasGold) === isSure).map(ignoredText),
    );
    return {
      played: forms.flatMap(playedOf),
      faults: [...known.flatMap(failedJudgements), ...(ignored ?? [])],
      swallowed: known.flatMap(({ swallowed }) => swallowed ?? []),
      unchecked: [
        ...named.filter((judge) => !asked.has(judge)).map((judge) => `the judge ${judge} was never asked`),
        ...[...guessed].map(
          (judge) =>
            `the environment reads the replies of the judge ${judge} itself: declare them in the rubric's judgements`,
        ),
        ...(unclear ?? []).map((text) => `${text}, and no gold play shows that it would`),
        ...(this.#leftOut ? ["it asks more questions, or has more judgements, than a validation plays"] : []),
      ],
    };
  }
}

/** Identifies answers, without those to one question. */
function idOf(answers: Answers, without?: string): string {
  return JSON.stringify([...answers].filter(([id]) => id !== without).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function scoresOf({ records }: Outcome): string {
  return JSON.stringify(records.map(({ reward, scores, steps }) => [reward, scores, steps]));
}

function meanOf(records: readonly ScoreRecord[]): number | null {
  const rewards = records.flatMap(({ reward }) => reward ?? []);
  return rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
}

/** The error of a function with one judgement, if the function gives a score with another one. */
function ownError(alike: readonly Outcome[], isChosen: (outcome: Outcome) => boolean): string | null {
  const [chosen] = alike.filter(isChosen);
  const others = alike.filter((outcome) => !isChosen(outcome));
  const fails = ({ records }: Outcome, name: string) =>
    records.some(({ scoring_errors }) => scoring_errors.some((failure) => failure.function === name));
  const failures = (chosen?.records ?? []).flatMap(({ scoring_errors }) => scoring_errors);
  const own = failures.find(({ function: name }) => others.some((other) => !fails(other, name)));
  return own === undefined ? null : `${own.function}: ${own.error}`;
}

function playedOf({ judge, judgements }: FormResult, index: number): PlayedJudgement[] {
  return judgements.map(({ text, gold, other, error }) => {
    const rewards = gold.length > 0 ? gold : other;
    const reward = rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length;
    return { judge, question: index + 1, judgement: text, reward, error };
  });
}

function failedJudgements({ judge, judgements }: FormResult): string[] {
  return judgements.flatMap(({ text, error }) => {
    return error === null ? [] : [`the judgement ${JSON.stringify(text)} of the judge ${judge}: ${error}`];
  });
}

function isIgnored({ judgements, changes }: FormResult): boolean {
  return !changes && judgements.length > 1 && judgements.every(({ error }) => error === null);
}

function ignoredText({ judge, judgements }: FormResult): string {
  return `no judgement of the judge ${judge} (${judgements.map(({ text }) => text).join(" | ")}) changes a score`;
}
