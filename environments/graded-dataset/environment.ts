/**
 * An eval without code: prompts, graders and tools are data, and the rows may be any objects.
 *
 * Rows and graders have the form of OpenAI Evals: `testing_criteria` and `input_messages` of an eval made there can be
 * used unchanged, and a row may have its members in `item`. The model is offered the tools, and its calls can be
 * graded, but nothing runs them.
 */
import { dataset, defineEnvironment, type JsonObject, Rubric, SingleTurnEnv, type ToolDefinition } from "rollcall";
import { Arguments, gradersOf, membersNamed, promptOf, promptPath } from "./arguments.ts";
import { type Grade, gradesOf, type Item } from "./grade.ts";
import { type Grader, judgesOf, needsOf, passThreshold } from "./graders.ts";
import { rowSchema } from "./rows.ts";

class GradedEnv extends SingleTurnEnv<Item> {
  readonly #tools: readonly ToolDefinition[];

  constructor(options: ConstructorParameters<typeof SingleTurnEnv<Item>>[0], tools: readonly ToolDefinition[]) {
    super(options);
    this.#tools = tools;
  }

  override get toolDefinitions(): readonly ToolDefinition[] {
    return this.#tools;
  }
}

export const loadEnvironment = defineEnvironment({
  args: Arguments,
  needs: (given) => needsOf(gradersOf(given)),
  build: (given) => {
    const prompt = promptOf(given);
    const rows = rowSchema(membersNamed(given), promptPath(given));
    const options = {
      dataset: dataset(rows, "uploaded"),
      ...(prompt && { prompt: (item: JsonObject) => prompt(item) }),
      rubric: rubricOf(gradersOf(given)),
    };
    return new GradedEnv(options, toolsOf(given));
  },
});

function toolsOf({ tools = [] }: Arguments): ToolDefinition[] {
  return tools.map(({ type, function: { strict, ...offered } }) => {
    return { type, function: { ...offered, ...(strict !== undefined && { strict }) } };
  });
}

function rubricOf(graders: readonly Grader[]): Rubric<Item> {
  const rubric = new Rubric<Item>({ judges: judgesOf(graders) });
  const share = 1 / graders.length;
  for (const grader of graders) {
    const { name, weight = share } = grader;
    const { whole, parts } = gradesOf(grader);
    rubric.addRewardFunc(name, whole, weight);
    for (const [part, grade] of parts) rubric.addMetric(`${name}.${part}`, grade);
    const passes = passing(grader, whole);
    if (passes !== null) rubric.addMetric(`${name}.passed`, passes);
  }
  return rubric;
}

/** Whether a score reaches the grader's threshold; null if it has none. */
function passing(grader: Grader, whole: Grade): ((...args: Parameters<Grade>) => Promise<boolean>) | null {
  const threshold = passThreshold(grader);
  if (threshold === null) return null;
  return async (args) => (await whole(args)) >= threshold;
}
