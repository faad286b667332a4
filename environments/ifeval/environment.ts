/** IFEval: prompts with instructions whose following a program can check (Zhou et al., 2023). */
import {
  dataset,
  defineEnvironment,
  type RewardArgs,
  SingleTurnEnv,
  spendWork,
  textOf,
  withoutThoughts,
} from "rollcall";
import * as z from "zod";
import { INSTRUCTIONS, type InstructionId, isInstructionId } from "./instructions.ts";

const MAX_INSTRUCTIONS = 25;

const Row = z
  .object({
    prompt: z.string().min(1),
    instruction_id_list: z.array(z.string()).min(1).max(MAX_INSTRUCTIONS),
    kwargs: z.array(z.record(z.string(), z.unknown()).nullable()),
    key: z.union([z.int(), z.string()]).nullish(),
  })
  .transform(({ prompt, instruction_id_list, kwargs, ...row }, context) => {
    for (const [at, id] of instruction_id_list.entries()) {
      const fault = faultOf(id, argumentsOf(kwargs[at]));
      if (fault === null) continue;
      context.addIssue({ code: "custom", path: ["kwargs", at], message: `${id}: ${fault}` });
    }
    return {
      ...row,
      question: prompt,
      instructions: instruction_id_list.map((id, at) => ({ id, args: argumentsOf(kwargs[at]) })),
    };
  });

/** The published rows have every argument of every instruction, most of them null. */
function argumentsOf(given: Readonly<Record<string, unknown>> | null | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given ?? {}).filter(([, value]) => value !== null));
}

function faultOf(id: string, args: Readonly<Record<string, unknown>>): string | null {
  if (!isInstructionId(id)) return "not an instruction of IFEval";
  const { error } = INSTRUCTIONS[id].args.safeParse(args);
  const [issue] = error?.issues ?? [];
  return issue === undefined ? null : `${issue.path.join(".")}: ${issue.message}`;
}

type Task = z.infer<typeof Row>;

/** Which instructions one of these forms of the reply follows. */
function followed(args: RewardArgs<Task, unknown>, formsOf: (reply: string) => readonly string[]): boolean[] {
  const reply = withoutThoughts(textOf(args.completion.at(-1)));
  const forms = formsOf(reply).filter((form) => form.trim() !== "");
  const { instructions } = args.task;
  const lengths = forms.map(({ length }) => length);
  const steps = instructions.map(({ id, args: given }) => (isInstructionId(id) ? stepsOf(id, given, lengths) : 0));
  spendWork(args, sum(steps), "checking the instructions");
  return instructions.map(({ id, args: given }) => {
    if (!isInstructionId(id)) return false;
    const check = INSTRUCTIONS[id].checkOf(given);
    return forms.some(check);
  });
}

/** The work of an instruction on forms of these lengths. */
function stepsOf(id: InstructionId, given: unknown, lengths: readonly number[]): number {
  const steps = INSTRUCTIONS[id].stepsOf(given);
  return sum(lengths.map(steps));
}

function sum(of: readonly number[]): number {
  return of.reduce((total, one) => total + one, 0);
}

const strictly = (reply: string) => [reply];

/** Also without its first line, its last line and its asterisks: a remark before or after the answer is forgiven. */
function loosely(reply: string): string[] {
  const lines = reply.split("\n");
  const cut = [lines.slice(1), lines.slice(0, -1), lines.slice(1, -1)].map((rest) => rest.join("\n").trim());
  const forms = [reply, ...cut];
  return [...new Set([...forms, ...forms.map((form) => form.replaceAll("*", ""))])];
}

function count(of: readonly boolean[]): number {
  return of.filter(Boolean).length;
}

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({
    system_prompt: z.string().default("").describe("none by default, as in the reference"),
  }),
  build: ({ system_prompt }) =>
    new SingleTurnEnv({
      dataset: dataset(Row, "uploaded"),
      ...(system_prompt !== "" && { systemPrompt: system_prompt }),
      rubric: {
        rewards: { prompt_strict: (args) => !followed(args, strictly).includes(false) },
        metrics: {
          prompt_loose: (args) => !followed(args, loosely).includes(false),
          instructions: ({ task }) => task.instructions.length,
          instructions_strict: (args) => count(followed(args, strictly)),
          instructions_loose: (args) => count(followed(args, loosely)),
        },
      },
    }),
});
