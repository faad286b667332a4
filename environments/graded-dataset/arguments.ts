/** The arguments of the eval: how prompts are made of its rows, what grades the replies, which tools are offered. */
import type { JsonObject, Messages } from "rollcall";
import * as z from "zod";
import { computable, type Grader, type GraderPart, Graders, partsOf } from "./graders.ts";
import { ItemMessages, type MessageTemplate, pathsOf, renderMessages } from "./messages.ts";
import { ItemTemplate, type Path, pathOf, pathsIn } from "./template.ts";

const InputMessages = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("template"), template: ItemMessages }),
  z.strictObject({
    type: z.literal("item_reference"),
    item_reference: z
      .string()
      .refine((text) => text.startsWith("item.") && pathOf(text) !== null, "is like item.messages"),
  }),
]);

const Tool = z.strictObject({
  type: z.literal("function"),
  function: z.strictObject({
    name: z.string().regex(/^[\w-]{1,64}$/, "is 1 to 64 letters, digits, _ or -"),
    description: z.string().default(""),
    parameters: z.record(z.string(), z.json()).default({ type: "object", properties: {} }),
    strict: z.boolean().optional(),
  }),
});

const PROMPTS = ["messages", "template", "input_messages"] as const;
const GRADERS = ["graders", "testing_criteria"] as const;

export const Arguments = z
  .strictObject({
    messages: ItemMessages.optional().describe("the prompt; default: a row's own prompt or question"),
    template: ItemTemplate.optional().describe("the prompt as one message of the user"),
    input_messages: InputMessages.optional().describe("the prompt as OpenAI's data_source has it"),
    graders: Graders.optional().describe("what scores the replies; the reward is their weighted sum"),
    testing_criteria: Graders.optional().describe("the same by OpenAI's name"),
    tools: z.array(Tool).min(1).max(128).optional().describe("offered to the model; nothing runs them"),
  })
  .superRefine((given, context) => {
    for (const names of [PROMPTS, GRADERS]) {
      const second = names.filter((name) => given[name] !== undefined)[1];
      if (second === undefined) continue;
      const message = `give one of ${names.join(", ")}`;
      context.addIssue({ code: "custom", path: [second], message });
    }
    if (given.graders !== undefined || given.testing_criteria !== undefined) return;
    context.addIssue({ code: "custom", path: ["graders"], message: "say what scores the replies" });
  });
export type Arguments = z.output<typeof Arguments>;

export function gradersOf({ graders, testing_criteria }: Arguments): Grader[] {
  return computable(graders ?? testing_criteria ?? []);
}

/** Makes the prompt of an item; null if the row has its prompt. */
export function promptOf(given: Arguments): ((item: JsonObject) => Messages) | null {
  const templates = templatesOf(given);
  return templates.length === 0 ? null : (item) => renderMessages(templates, { item });
}

/** The path of the prompt in the item, if it is there. */
export function promptPath({ input_messages }: Arguments): Path | null {
  if (input_messages?.type !== "item_reference") return null;
  return pathOf(input_messages.item_reference)?.slice(1) ?? null;
}

/** Members of the item that templates name: in the prompt, and in graders. */
export function membersNamed(given: Arguments): Path[] {
  const graded = gradersOf(given).flatMap(partsOf).flatMap(pathsOfPart);
  const paths = [...pathsOf(templatesOf(given)), ...graded].filter(([root]) => root === "item");
  const unique = new Map(paths.map(([, ...path]) => [JSON.stringify(path), path]));
  return [...unique.values()].filter((path) => path.length > 0);
}

function templatesOf({ messages, template, input_messages }: Arguments): readonly MessageTemplate[] {
  if (template !== undefined) return [{ role: "user", content: template }];
  if (input_messages?.type === "template") return input_messages.template;
  return messages ?? [];
}

function pathsOfPart(part: GraderPart): Path[] {
  if (part.type === "http") return [];
  if (part.type === "label_model" || part.type === "score_model") return pathsOf(part.input);
  return [...pathsIn(part.input), ...pathsIn(part.reference)];
}
