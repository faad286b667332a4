/** Wordle: find a word of five letters in six guesses; the reply to each guess marks which letters were right. */
import { dataset, defineEnvironment, type LiveState, type Messages, MultiTurnEnv, XMLParser } from "rollcall";
import * as z from "zod";
import { feedbackOn, lettersIn } from "./feedback.ts";
import { WORDS } from "./words.ts";

const Task = z.object({ question: z.string(), answer: z.string().regex(/^[a-z]{5}$/) });

/** The game in the rollout's state. A type, not an interface: only types are assignable to plain JSON. */
type Game = {
  /** Number of replies with a word. */
  guesses: number;
  /** The feedback to the last guess. */
  feedback: string;
  solved: boolean;
};

const parser = new XMLParser(["guess"], "guess");

const RULES = `Find the secret word of five letters. Answer each time with one guess in this form:
${parser.formatDescription()}
Each guess is answered letter by letter: G is right, Y is in the word but elsewhere, X is not in the word.`;

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    max_guesses: z.int().min(1).max(20).default(6),
    system_prompt: z.string().default("You play a word game. Think step by step, then give your guess in its tags."),
  }),
  build: ({ max_guesses, system_prompt }) =>
    new MultiTurnEnv({
      dataset: dataset(Task, (_index, random) => ({
        question: `${RULES}\nYou have ${max_guesses} guesses.`,
        answer: WORDS[Math.floor(random() * WORDS.length)] ?? "",
      })),
      setupState: (): Game => ({ guesses: 0, feedback: "", solved: false }),
      systemPrompt: system_prompt,
      parser,
      envResponse: (messages, state) => reply(messages, state, max_guesses),
      maxReward: 2.2,
      rubric: {
        rewards: {
          correct_answer: ({ state }) => state.solved,
          partial_answer: ({ state }) => (state.solved ? 0 : lettersIn(state.feedback)),
          length_bonus: ({ state }) => (state.solved ? 1 / state.guesses : 0),
          format_reward: { weight: 0.2, fn: ({ completion }) => parser.formatReward(completion) },
        },
        metrics: { guesses: ({ state }) => state.guesses },
      },
    }),
});

/** For `rollcall env validate`: a policy that has the word. */
export function goldPolicy(row: unknown) {
  return [parser.format({ guess: Task.parse(row).answer })];
}

/** A reply without a word of five letters also uses up a guess. The last guess ends the game without another call. */
function reply(messages: Messages, state: LiveState<z.infer<typeof Task>, Game>, limit: number): string {
  const word = wordIn(messages);
  if (word !== null) {
    state.guesses += 1;
    state.feedback = feedbackOn(word, state.answer);
    state.solved = word === state.answer;
  }
  const left = limit - state.turn;
  const text = `${answerTo(word, state.feedback)}\n\n${outlook(state.solved, left, state.answer)}`;
  if (state.solved || left <= 0) state.final_env_response = [{ role: "user", content: text }];
  return text;
}

function wordIn(messages: Messages): string | null {
  const word = parser.parseAnswer(messages.slice(-1))?.toLowerCase() ?? "";
  return /^[a-z]{5}$/.test(word) ? word : null;
}

function answerTo(word: string | null, feedback: string): string {
  if (word === null) return "That is no guess: write five letters from a to z between the tags.";
  return `${[...word.toUpperCase()].join(" ")}\n${[...feedback].join(" ")}`;
}

function outlook(solved: boolean, left: number, answer: string): string {
  if (solved) return "That is the word.";
  if (left <= 0) return `The word was ${answer}.`;
  return left === 1 ? "You have 1 guess left." : `You have ${left} guesses left.`;
}
