/**
 * Tools that a row brings along (`info.tool_defs`): what the model is offered for that row in place of the environment's
 * own definitions. Source: verifiers' tool definition, `{name, description, parameters, strict?}`. Its older shapes are
 * refused, as there.
 */
import * as z from "zod";
import { isRecord, type Json } from "../../contract/json.ts";
import type { ToolDefinition } from "../../contract/messages.ts";

const RowTools = z.array(
  z.strictObject({
    name: z.string().min(1),
    description: z.string(),
    parameters: z.record(z.string(), z.unknown()),
    strict: z.boolean().nullish(),
  }),
);

/** Null where the row brings none. Throws TypeError for a shape that is not this one. */
export function rowTools(info: Json): readonly ToolDefinition[] | null {
  if (!isRecord(info)) return null;
  if (info["oai_tools"] !== undefined) {
    throw new TypeError("info.oai_tools is verifiers' old name: call it tool_defs");
  }
  if (info["tool_defs"] === undefined || info["tool_defs"] === null) return null;
  const parsed = RowTools.safeParse(info["tool_defs"]);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = ["info", "tool_defs", ...(issue?.path ?? [])].join(".");
    throw new TypeError(`${path}: ${issue?.message}; a tool is {name, description, parameters}`);
  }
  return parsed.data.map(({ strict, ...tool }) => ({
    type: "function",
    function: { ...tool, ...(typeof strict === "boolean" && { strict }) },
  }));
}
