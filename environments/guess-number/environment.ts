/** Find a secret number with guesses: every rollout draws its own, which only the tool sees. */
import {
  dataset,
  defineEnvironment,
  inject,
  type LiveState,
  type Messages,
  StatefulToolEnv,
  textOf,
  tool,
} from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), max: z.int().min(2) });

/** The game in the rollout's state. A type, not an interface: only types are assignable to plain JSON. */
type Game = {
  secret: number;
  /** The remaining range, including both ends. */
  low: number;
  high: number;
  guesses: number;
  found: boolean;
};

const guess = tool({
  name: "guess",
  description: "Guess the number. Answers correct, or higher or lower and the range that is left.",
  parameters: z.object({ number: z.int().describe("your guess") }),
  hidden: { game: inject<Game>() },
  run: ({ number, game }) => {
    if (!game.found) game.guesses += 1;
    if (number === game.secret) {
      game.found = true;
      return "correct";
    }
    if (number < game.secret) game.low = Math.max(game.low, number + 1);
    else game.high = Math.min(game.high, number - 1);
    return `${number < game.secret ? "higher" : "lower"}, ${game.low} to ${game.high}`;
  },
});

/** Ends the rollout with the reply to the right guess: another call would only cost money. */
class GuessNumberEnv extends StatefulToolEnv<z.infer<typeof Task>, Game> {
  override async envResponse(messages: Messages, state: LiveState<z.infer<typeof Task>, Game>): Promise<Messages> {
    const replies = await super.envResponse(messages, state);
    if (state.found) state.final_env_response = replies;
    return replies;
  }
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    max: z.int().min(2).max(1_000_000).default(100),
    max_turns: z.int().positive().default(10),
  }),
  build: ({ max, max_turns }) =>
    new GuessNumberEnv({
      dataset: dataset(Task, () => ({
        question: `I am thinking of a whole number from 1 to ${max}. Find it with the guess tool.`,
        max,
      })),
      setupState: ({ task }, { random }) => ({
        secret: 1 + Math.floor(random() * task.max),
        low: 1,
        high: task.max,
        guesses: 0,
        found: false,
      }),
      tools: [guess],
      maxTurns: max_turns,
      updateToolArgs: (_name, args, _messages, state) => ({ ...args, game: state }),
      stops: { found: { when: (state) => state.found, priority: 10 } },
      rubric: {
        rewards: {
          found: { weight: 0.5, fn: ({ state }) => state.found },
          narrowed: { weight: 0.5, fn: ({ state, task }) => narrowed(state, task.max) },
        },
        metrics: { guesses: ({ state }) => state.guesses },
      },
    }),
});

/** Halves the range that the tool returns, for `rollcall env validate`. */
export function goldPolicy(row: unknown) {
  const { max } = Task.parse(row);
  return ({ messages }: { readonly messages: Messages }) => {
    const [low = 1, high = max] = (textOf(messages.at(-1)).match(/\d+/g) ?? []).map(Number);
    const number = Math.floor((low + high) / 2);
    return { tool_calls: [{ name: "guess", arguments: { number } }] };
  };
}

/** The fraction of the information gained: 0 with the whole range left, 1 if one number is left or found. */
function narrowed({ found, low, high }: Readonly<Game>, max: number): number {
  return found ? 1 : 1 - Math.log2(high - low + 1) / Math.log2(max);
}
