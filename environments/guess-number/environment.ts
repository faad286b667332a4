/** Find a secret number by asking: every rollout draws its own, which only the tool gets to see. */
import {
  dataset,
  defineEnvironment,
  inject,
  type LiveState,
  type Messages,
  StatefulToolEnv,
  tool,
} from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), max: z.int().min(2) });

/** The part of the rollout's state that is the game. A type, not an interface: only that is known to be plain JSON. */
type Game = { secret: number; guesses: number; found: boolean };

const guess = tool({
  name: "guess",
  description: "Guess the number. Answers higher, lower or correct.",
  parameters: z.object({ number: z.int().describe("your guess") }),
  hidden: { game: inject<Game>() },
  run: ({ number, game }) => {
    if (!game.found) game.guesses += 1;
    if (number === game.secret) {
      game.found = true;
      return "correct";
    }
    return number < game.secret ? "higher" : "lower";
  },
});

/** Ends the rollout with the reply to the right guess: a call to have the model say thanks would be money for nothing. */
class GuessNumberEnv extends StatefulToolEnv<z.infer<typeof Task>, Game> {
  override async envResponse(
    messages: Messages,
    state: LiveState<z.infer<typeof Task>, Game>,
  ): Promise<Messages> {
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
        guesses: 0,
        found: false,
      }),
      tools: [guess],
      maxTurns: max_turns,
      updateToolArgs: (_name, args, _messages, state) => ({ ...args, game: state }),
      stops: { found: { when: (state) => state.found, priority: 10 } },
      rubric: {
        rewards: {
          found: ({ state }) => state.found,
          brevity: { weight: 0.1, fn: ({ state, task }) => brevity(state, task.max) },
        },
        metrics: { guesses: ({ state }) => state.guesses },
      },
    }),
});

/** 1 when found within as many guesses as halving the range may take, less in proportion beyond, 0 when not found. */
function brevity({ found, guesses }: Readonly<Game>, max: number): number {
  return found ? Math.min(1, Math.ceil(Math.log2(max + 1)) / guesses) : 0;
}
