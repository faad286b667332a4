/** An environment whose rubric calls judges, and the replies of a scripted judge. */
import * as z from "zod";
import { dataset, defineEnvironment, GroupJudgeRubric, JudgeRubric, SingleTurnEnv } from "../../src/core/entry.ts";
import { registerOnce } from "./registered.ts";

const Task = z.object({ question: z.string() });
const choices = { bad: 0, good: 1 };

const essays = defineEnvironment({
  args: z.strictObject({ strict: z.boolean().default(false) }),
  build: ({ strict }) => {
    const quality = "Topic: {question}\nEssay:\n{response}\nHow good is it?";
    const style = "Essay:\n{response}\nHow good is its style?";
    const asked = new JudgeRubric({ name: "quality", prompt: quality, choices });
    const second = { name: "style", prompt: style, choices, judge: "strict" };
    return new SingleTurnEnv({
      dataset: dataset(Task, "uploaded"),
      rubric: strict ? [asked, new JudgeRubric(second)] : asked,
    });
  },
});

const rankedEssays = defineEnvironment({
  args: z.strictObject({}),
  build: () =>
    new SingleTurnEnv({
      dataset: dataset(Task, "uploaded"),
      rubric: new GroupJudgeRubric({ name: "best", criteria: "The longer, the better." }),
    }),
});

export function registerEssays(): void {
  for (const [id, { args, needs, load }] of Object.entries({
    essays,
    "ranked-essays": rankedEssays,
  })) {
    registerOnce({ id, version: "1.0.0", digest: `sha256:${id}`, args, needs, load });
  }
}

/** This many topics. */
export function topics(count: number): { question: string }[] {
  return Array.from({ length: count }, (_, at) => ({ question: `Topic ${at}` }));
}

/** A judge's whole reply. */
export function judgement(label: string, reason = "because"): string {
  return `I have read it.\n${JSON.stringify({ reason, verdict: label })}`;
}
