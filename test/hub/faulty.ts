/** An environment with one fault, which its argument names. */
import { dataset, defineEnvironment, SingleTurnEnv } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string(), answer: z.string() });
const kind = z.enum(["none", "constant", "raises", "random", "hangs", "long"]);

type Said = Readonly<{ completion: readonly { readonly content: unknown }[]; answer: string }>;
const said = ({ completion, answer }: Said) => completion.at(-1)?.content === answer;

const REWARDS: Readonly<Record<z.infer<typeof kind>, (given: Said) => boolean | number | Promise<number>>> = {
  none: said,
  constant: () => 1,
  raises: (given) => {
    if (said(given)) return 1;
    throw new Error("no digits");
  },
  random: said,
  hangs: () => new Promise(() => undefined),
  long: () => {
    throw new Error(`${"\u0000".repeat(60)}${"x".repeat(150)}`);
  },
};

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ kind }),
  build: (args) => {
    const drawn = args.kind === "random" ? Math.random() : 1;
    const rows = [1, 2, 3].map((number) => ({ question: `${drawn} + ${number}?`, answer: String(number) }));
    const name = args.kind === "long" ? (at: number) => `${at}${"名".repeat(190)}` : (at: number) => `right_${at}`;
    const many = args.kind === "long" ? 20 : 1;
    const rewards = Object.fromEntries(Array.from({ length: many }, (_, at) => [name(at), REWARDS[args.kind]]));
    return new SingleTurnEnv({ dataset: dataset(Task, rows), rubric: { rewards } });
  },
});
