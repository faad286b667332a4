/** One rollout in pieces: its head, pages of its turns, an outline, one whole turn, its tokens. */
import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { wholeNumber } from "../../contract/primitives.ts";
import { JudgeQuestionList, Outline, RolloutHead, TurnPage, TurnTokenPage, WholeTurn } from "../../contract/turns.ts";
import { answer, readQuery } from "./answer.ts";
import { type Operation, pathParam } from "./operation.ts";

/** No rollout has so many turns. */
const MOST_TURNS = 1_000_000_000;
const After = wholeNumber(0, MOST_TURNS).optional().describe("turns after this one; default: from the first");

const TurnsQuery = z.strictObject({
  after: After,
  before: wholeNumber(0, MOST_TURNS)
    .optional()
    .describe(
      "turns before this one; without `after` the last ones, and `has_more` says whether there are earlier ones",
    )
    .meta({ example: 40 }),
  limit: wholeNumber(1, LIMITS.turnsPerPage).default(20),
});
const OutlineQuery = z.strictObject({
  after: After,
  limit: wholeNumber(1, LIMITS.outlinePerPage).default(1000),
});
const TokensQuery = z.strictObject({
  after: wholeNumber(0, LIMITS.tokensPerCall).default(0).describe("sampled ids to skip"),
  prompt_after: wholeNumber(0, LIMITS.tokensPerCall).default(0).describe("ids of the prompt's suffix to skip"),
  limit: wholeNumber(1, LIMITS.tokensPerPage).default(2000).describe("of each"),
});

/** It runs the code of the environment. */
const QUESTIONS_COST_MS = 50;

const CUT =
  "Texts are cut to the first 10,000 UTF-16 units, with the full `length`, and lists in a turn to the first 100; `GET …/turns/{turn}` returns one turn in full.";

export const turnOperations: readonly Operation[] = [
  {
    id: "getRolloutHead",
    route: "GET /v1/rollouts/{id}/head",
    permission: "rollouts:read",
    summary: "Read a rollout without its texts: outcome, scores, errors, usage, how many turns",
    reply: {
      description: "The rollout without prompt, completion, turns and state",
      schema: RolloutHead,
    },
    handle: (context) => answer(context, context.var.services.readRolloutHead),
  },
  {
    id: "listTurns",
    route: "GET /v1/rollouts/{id}/turns",
    permission: "rollouts:read",
    summary: "Read a rollout's turns in pages, from the first or the last",
    description: `${CUT} A page holds at most 4 MiB of stored turns, but at least one turn. \`?before=\` with a large enough number returns the last page. Before the rollout is done, the answer is what is stored so far.`,
    query: TurnsQuery,
    reply: { description: "One page of turns, earliest first", schema: TurnPage },
    handle: (context) => {
      const { after = null, before = null, limit } = readQuery(context, TurnsQuery);
      return answer(context, context.var.services.readTurns, { after, before, limit });
    },
  },
  {
    id: "getTurn",
    route: "GET /v1/rollouts/{id}/turns/{turn}",
    permission: "rollouts:read",
    summary: "Read one turn in full, with the environment's state after it",
    reply: { description: "The turn, by its number from 0", schema: WholeTurn },
    handle: (context) => answer(context, context.var.services.readTurn, pathParam(context, "turn")),
  },
  {
    id: "getTurnTokens",
    route: "GET /v1/rollouts/{id}/turns/{turn}/tokens",
    permission: "rollouts:read",
    summary: "Read the tokens of one turn: sampled ids, logprobs, mask, version of the weights",
    description:
      "Ids and logprobs are the engine's, unchanged. The platform does not know the engine's vocabulary, so there are no texts. `mask` is the loss mask that training would use, as far as is known now: a rollout trains as a whole or not at all, and `untrainable` says why not. `conflict`: the engine sent no token ids.",
    query: TokensQuery,
    reply: { description: "One page of its tokens", schema: TurnTokenPage },
    errors: ["conflict"],
    handle: (context) => {
      const ask = readQuery(context, TokensQuery);
      return answer(context, context.var.services.readTurnTokens, pathParam(context, "turn"), ask);
    },
  },
  {
    id: "getOutline",
    route: "GET /v1/rollouts/{id}/outline",
    permission: "rollouts:read",
    summary: "Read a rollout's turns without their texts: when, how long, which tools",
    description: "A page covers at most 8 MiB of stored turns, but at least one turn.",
    query: OutlineQuery,
    reply: { description: "One page of turns, earliest first", schema: Outline },
    handle: (context) => {
      const { after = null, limit } = readQuery(context, OutlineQuery);
      return answer(context, context.var.services.readOutline, { after, limit });
    },
  },
  {
    id: "listJudgeQuestions",
    route: "GET /v1/rollouts/{id}/questions",
    permission: "rollouts:read",
    summary: "Read the questions that a rollout's judges were asked",
    description:
      "One for each of its judgements, all on one page. Questions are not stored: the rubric is run again over the stored turns, without calling a judge or another server, and a question is returned if its hash is that of the judgement. Texts are cut to the first 10,000 UTF-16 units, with the full `length`.",
    costMs: QUESTIONS_COST_MS,
    reply: { description: "The questions, in the order of the judgements", schema: JudgeQuestionList },
    handle: (context) => answer(context, context.var.services.readJudgeQuestions),
  },
];
