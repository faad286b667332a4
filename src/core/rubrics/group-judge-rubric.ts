/**
 * A rubric that ranks the rollouts of one task against each other by a model's verdict: RULER's idea (OpenPipe's ART),
 * with its weaknesses mended.
 *
 * Invariants. One call shows all members; scores are matched by ids that are drawn anew, in an order that is shuffled
 * anew, for every pass; the seed is recorded. A score is the mean of two passes at least, and of more while the passes
 * rank differently. Members that said the same are shown once and score the same; when all did, nobody is asked. What
 * the judge sees holds no reward, no id and nothing else the platform knows. A reply that is off the form is no
 * verdict.
 *
 * These scores mean something inside their group only: they belong into advantages. As a mean over an eval they say
 * nothing; there, give the rubric the weight 0.
 */

import { commonPrefix, type Messages } from "../../contract/messages.ts";
import { seededRandom, seededWords } from "../../contract/random.ts";
import type { ScoringArgs } from "../environments/contract.ts";
import { refuseUnknownOptions } from "../field-path.ts";
import { shuffledOrder } from "../shuffle.ts";
import { cutMiddle, fenced, transcriptOf } from "./judge-rubric.ts";
import type { Judge } from "./judges.ts";
import { Rubric } from "./rubric.ts";

export interface GroupJudgeOptions {
  /** The name of the score. */
  readonly name: string;
  readonly weight?: number;
  /** What makes one attempt better than another. */
  readonly criteria: string;
  /** Which of the run's judges answers; `default` when left out. */
  readonly judge?: string;
  /** Calls, each with an order of its own; 2 at least, and when left out. */
  readonly passes?: number;
  /** Calls at most, when the passes rank differently; 4 when left out. */
  readonly maxPasses?: number;
  /**
   * The most that all transcripts of a group may hold together, in even parts; the rest is cut out of their middles.
   * 200,000 when left out.
   */
  readonly maxCharacters?: number;
}

const OPTIONS = ["name", "weight", "criteria", "judge", "passes", "maxPasses", "maxCharacters"];
const FEWEST_PASSES = 2;
const MOST_PASSES = 4;
const MAX_CHARACTERS = 200_000;
const RANGE = [0, 1] as const;
/** All said the same: none is better, whatever that is worth. */
const NO_DIFFERENCE = 0.5;
const LETTERS = "bcdfghjklmnpqrstvwxz";
const ID_LETTERS = 6;

type Args = ScoringArgs<unknown, unknown>;
type Scores = Readonly<Record<string, number>>;

/** What a group is asked about: each different attempt once, in an order that does not depend on who made it. */
interface Contest {
  readonly context: string;
  readonly attempts: readonly string[];
  /** Which attempt each member made. */
  readonly made: readonly number[];
  readonly leftOut: number;
}

export class GroupJudgeRubric<Task = unknown, S = unknown> extends Rubric<Task, S> {
  readonly #options: Required<Omit<GroupJudgeOptions, "weight">>;

  constructor(options: GroupJudgeOptions) {
    refuseUnknownOptions("a group judge rubric", options, OPTIONS);
    const { weight = 1, judge = "default", passes = FEWEST_PASSES, ...given } = options;
    const defaults = { maxPasses: Math.max(MOST_PASSES, passes), maxCharacters: MAX_CHARACTERS };
    const all = { ...defaults, ...given, judge, passes };
    checkOptions(all);
    super({ judges: [judge] });
    this.#options = all;
    this.#add(all.name, weight, mean);
    // Beside the score, for whoever wants to know how sure the judge was.
    this.#add(`${all.name}_spread`, 0, spread);
  }

  /** All functions ask the same, so that all of them together cost one contest. */
  #add(name: string, weight: number, of: (scores: readonly number[]) => number): void {
    const score = async (group: readonly Args[], { judge }: { readonly judge: Judge }) => {
      const contest = contestOf(group, this.#options.maxCharacters);
      if (contest.attempts.length < 2) return group.map(() => of([NO_DIFFERENCE]));
      const passes = await this.#passes(judge, contest);
      return contest.made.map((attempt) => of(passes.map((scores) => scores[attempt] ?? Number.NaN)));
    };
    this.addGroupRewardFunc(name, score, weight);
  }

  /** A list of scores for each pass, in the order of the attempts. */
  async #passes(judge: Judge, contest: Contest): Promise<(readonly number[])[]> {
    const { passes, maxPasses } = this.#options;
    const first = Array.from({ length: passes }, (_, pass) => this.#ask(judge, contest, pass));
    const scores = await Promise.all(first);
    while (scores.length < maxPasses && ranksDiffer(scores)) {
      scores.push(await this.#ask(judge, contest, scores.length));
    }
    return scores;
  }

  async #ask(judge: Judge, contest: Contest, pass: number): Promise<readonly number[]> {
    const { attempts, context, leftOut } = contest;
    const seed = seedOf(this.#options.name, contest, pass);
    const ids = drawIds(attempts.length, seededRandom("group judge ids", seed));
    const order = shuffledOrder(attempts.length, seededWords("group judge order", seed));
    const shown = order.map((at) => `Attempt ${ids[at]}:\n${fenced(attempts[at] ?? "")}`);
    const prompt = `${TASK}\n\n${this.#options.criteria}\n\nWhat all attempts began with:\n${fenced(context)}\n\n${shown.join("\n\n")}`;
    const asked = {
      judge: this.#options.judge,
      ids: order.map((at) => ids[at] ?? ""),
      range: RANGE,
    };
    const scores: Scores = await judge(prompt, { ...asked, pass, leftOut, seed });
    return ids.map((id) => scores[id] ?? Number.NaN);
  }
}

const TASK =
  "Several attempts at one task follow. Compare them and give each a score from 0 (worst) to 1 (best). \
An attempt that comes closer to what is asked for scores more; attempts that are equally good score the same. \
Neither the order nor the ids of the attempts mean anything. What is asked for:";

function contestOf(group: readonly Args[], maxCharacters: number): Contest {
  const histories = group.map(({ prompt, completion }) => [...prompt, ...completion]);
  const shared = sharedPrefix(histories);
  const told = histories.map((history) => transcriptOf(history.slice(shared)));
  // In the order of their texts: whoever made which attempt, the judge is asked the same.
  const different = [...new Set(told)].sort((a, b) => (a < b ? -1 : 1));
  const share = Math.max(1, Math.floor(maxCharacters / (different.length + 1)));
  const context = cutMiddle(transcriptOf((histories[0] ?? []).slice(0, shared)), share);
  const cuts = different.map((text) => cutMiddle(text, share));
  return {
    context: context.text,
    attempts: cuts.map(({ text }) => text),
    made: told.map((text) => different.indexOf(text)),
    leftOut: [context, ...cuts].reduce((sum, cut) => sum + cut.leftOut, 0),
  };
}

/** Messages with which every history begins. */
function sharedPrefix(histories: readonly Messages[]): number {
  const [first = [], ...others] = histories;
  return others.reduce((shared, other) => Math.min(shared, commonPrefix(first, other)), first.length);
}

/**
 * The number in the purpose is that of the way to draw an order: with another way comes another, so that a recorded
 * seed never stands for two orders. A verdict belongs to what was asked, order and ids included: one of an earlier way
 * is none of a later one.
 */
function seedOf(name: string, { context, attempts }: Contest, pass: number): number {
  return Math.floor(seededRandom("group judge order 2", name, pass, context, ...attempts)() * 2 ** 32);
}

function drawIds(count: number, random: () => number): string[] {
  const ids = new Set<string>();
  while (ids.size < count) {
    const letters = Array.from({ length: ID_LETTERS }, () => LETTERS[Math.floor(random() * LETTERS.length)]);
    ids.add(letters.join(""));
  }
  return [...ids];
}

/** Whether one pass puts two attempts the other way round than another pass. */
function ranksDiffer(passes: readonly (readonly number[])[]): boolean {
  const [first = []] = passes;
  return first.some((_, a) =>
    first.some((_score, b) => {
      const signs = new Set(passes.map((scores) => Math.sign((scores[a] ?? 0) - (scores[b] ?? 0))));
      return signs.has(1) && signs.has(-1);
    }),
  );
}

function mean(scores: readonly number[]): number {
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

/** From the least to the most that a member got. */
function spread(scores: readonly number[]): number {
  return Math.max(...scores) - Math.min(...scores);
}

function checkOptions({ name, passes, maxPasses }: { name: string; passes: number; maxPasses: number }): void {
  if (!Number.isInteger(passes) || passes < FEWEST_PASSES) {
    throw new RangeError(`passes of the group judge ${name} is ${passes}: it must be at least 2`);
  }
  if (!Number.isInteger(maxPasses) || maxPasses < passes) {
    throw new RangeError(`maxPasses of the group judge ${name} is ${maxPasses}, below its passes (${passes})`);
  }
}
