/** Tools of all forms. */
import * as z from "zod";
import type { ToolDefinition } from "../../contract/messages.ts";
import { OptionalFlag, OptionalText } from "./fields.ts";

export const ToolName = z.string().min(1);
export const Schema = z.record(z.string(), z.unknown());

export const CalledTool = z.object({
  name: ToolName,
  description: OptionalText,
  parameters: Schema.nullish(),
  strict: OptionalFlag,
});

/** A function of any form as OpenAI's chat completions have it. One without parameters takes none. */
export function toolDefinition({ name, description, parameters, strict }: z.infer<typeof CalledTool>): ToolDefinition {
  return {
    type: "function",
    function: {
      name,
      description: description ?? "",
      parameters: parameters ?? { type: "object", properties: {} },
      ...(strict != null && { strict }),
    },
  };
}

/** The choice of one tool, as chat completions have it. */
export function chosenTool(name: string) {
  return { type: "function", function: { name } };
}

/** Chat completions refuse these fields in a call without tools. */
export const WITHOUT_TOOLS = { tool_choice: null, parallel_tool_calls: null };
