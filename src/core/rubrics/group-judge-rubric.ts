/**
 * A rubric that ranks the rollouts of one task against each other by a model's judgement: RULER's idea (OpenPipe's
 * ART), without its weaknesses.
 *
 * Invariants. One call shows all members. Every pass draws new ids and a new order, and scores are matched by those
 * ids; the seed is recorded. A score is the mean of at least two passes, and of more if the passes rank differently.
 * Members with equal transcripts are shown once and get the same score; if all are equal, no judge is called. The judge
 * sees no reward, no id and no other data of the platform. A reply that does not have the required form is not a
 * judgement.
 *
 * These scores are only comparable within their group, so use them for advantages. Their mean over an eval is
 * meaningless: give the rubric the weight 0 there.
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
  /** Which of the run's judges answers; `default` if absent. */
  readonly judge?: string;
  /** Number of calls, each with its own order; at least 2, and 2 if absent. */
  readonly passes?: number;
  /** Maximal number of calls if the passes rank differently; 4 if absent. */
  readonly maxPasses?: number;
  /**
   * Maximal length of all transcripts of a group together, in equal parts; the rest is cut out of their middles.
   * 200,000 if absent.
   */
  readonly maxCharacters?: number;
}

const OPTIONS = ["name", "weight", "criteria", "judge", "passes", "maxPasses", "maxCharacters"];
const FEWEST_PASSES = 2;
const MOST_PASSES = 4;
const MAX_CHARACTERS = 200_000;
const RANGE = [0, 1] as const;
/** The score if all transcripts are equal: none is better than another. */
const NO_DIFFERENCE = 0.5;
const LETTERS = "bcdfghjklmnpqrstvwxz";
const ID_LETTERS = 6;

type Args = ScoringArgs<unknown, unknown>;
type Scores = Readonly<Record<string, number>>;

/** The question about a group: each different attempt once, in an order that does not depend on who made it. */
interface Contest {
  readonly context: string;
  readonly attempts: readonly string[];
  /** For each member, the index of its attempt. */
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
    // An additional metric that shows how consistent the judge was.
    this.#add(`${all.name}_spread`, 0, spread);
  }

  /** All functions ask the same questions, so they share the judgements of one contest. */
  #add(name: string, weight: number, of: (scores: readonly number[]) => number): void {
    const score = async (group: readonly Args[], { judge }: { readonly judge: Judge }) => {
      const contest = contestOf(group, this.#options.maxCharacters);
      if (contest.attempts.length < 2) return group.map(() => of([NO_DIFFERENCE]));
      const passes = await this.#passes(judge, contest);
      return contest.made.map((attempt) => of(passes.map((scores) => scores[attempt] ?? Number.NaN)));
    };
    this.addGroupRewardFunc(name, score, weight);
  }

  /** For each pass a list of scores, in the order of the attempts. */
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
  const transcripts = histories.map((history) => transcriptOf(history.slice(shared)));
  // Sorted by text, so that the question does not depend on which member made which attempt.
  const different = [...new Set(transcripts)].sort((a, b) => (a < b ? -1 : 1));
  const share = Math.max(1, Math.floor(maxCharacters / (different.length + 1)));
  const context = cutMiddle(transcriptOf((histories[0] ?? []).slice(0, shared)), share);
  const cuts = different.map((text) => cutMiddle(text, share));
  return {
    context: context.text,
    attempts: cuts.map(({ text }) => text),
    made: transcripts.map((text) => different.indexOf(text)),
    leftOut: [context, ...cuts].reduce((sum, cut) => sum + cut.leftOut, 0),
  };
}

/** The number of messages with which every history begins. */
function sharedPrefix(histories: readonly Messages[]): number {
  const [first = [], ...others] = histories;
  return others.reduce((shared, other) => Math.min(shared, commonPrefix(first, other)), first.length);
}

/**
 * The seed of a pass. The number in the purpose is the version of the drawing algorithm: it changes with the algorithm,
 * so that a recorded seed never stands for two orders. A stored judgement belongs to its exact question, including
 * order and ids, so one of an earlier version is not reused.
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

/** Whether a pass ranks two attempts in the opposite order of another pass. */
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

/** The highest score that a member got minus the lowest. */
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
