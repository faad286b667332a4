/** Validates environments that are defined in a test, with two questions. */
import { dataset, defineEnvironment, type EnvironmentLoader } from "rollcall";
import * as z from "zod";
import type { EnvironmentCode } from "../../../src/core/protocol/environment-code.ts";
import { codeOf } from "../../../src/core/protocol/in-process.ts";
import type { GoldPolicy } from "../../../src/core/validation/policies.ts";
import { type Check, type Validation, validateEnvironment } from "../../../src/core/validation/validate.ts";

export const Task = z.object({ question: z.string(), answer: z.string() });
export const rows = dataset(Task, [
  { question: "1 + 1?", answer: "2" },
  { question: "1 + 2?", answer: "3" },
]);
export const said = ({ completion, answer }: { completion: readonly { content: unknown }[]; answer: string }) =>
  completion.at(-1)?.content === answer;

type Build = Parameters<typeof defineEnvironment>[0]["build"];

export function validated(
  load: EnvironmentLoader<z.ZodObject>,
  options: {
    gold?: GoldPolicy;
    later?: <T>(run: () => Promise<T>) => Promise<T>;
    uploaded?: unknown[];
    unmet?: string[];
    mostTurns?: number;
    /** Changes the code of the first instance. */
    across?: (code: EnvironmentCode) => EnvironmentCode;
  } = {},
): Promise<Validation> {
  return Promise.all([load.load({}), load.load({})]).then(([environment, secondInstance]) =>
    validateEnvironment(
      {
        code: (options.across ?? ((code) => code))(codeOf(environment, {})),
        secondInstance: codeOf(secondInstance, {}),
        goldPolicy: options.gold ?? null,
        ...(options.mostTurns !== undefined && { mostTurns: options.mostTurns }),
        later: options.later ?? ((run) => run()),
      },
      { examples: 5, uploaded: options.uploaded ?? [], unmet: options.unmet ?? [] },
    ),
  );
}

/** The checks by name. */
export async function checksOf(build: Build, options: Parameters<typeof validated>[1] = {}) {
  const load = defineEnvironment({ args: z.strictObject({}), build });
  return named((await validated(load, options)).checks);
}

export function named(checks: readonly Check[]): Record<string, [Check["status"], string]> {
  return Object.fromEntries(checks.map(({ name, status, message }) => [name, [status, message]]));
}
