/** Tools: a name, a schema for what the model sends, and a function. Hidden arguments never reach the model. */
import type * as z from "zod";
import type { ToolDefinition } from "../../contract/messages.ts";
import type { AnyTool, Awaitable, Call, Injected } from "./contract.ts";
import { toolSchema } from "./tool-schema.ts";

export interface ToolSpec<P extends z.ZodObject, H extends Record<string, Injected<unknown>>> {
  readonly name: string;
  readonly description: string;
  readonly parameters: P;
  /** Arguments that `updateToolArgs` provides, each declared with `inject<Type>()`. */
  readonly hidden?: H;
  /** False when a second run would do harm; the default is true. */
  readonly idempotent?: boolean;
  readonly run: (args: z.infer<P> & { [K in keyof H]: H[K]["__inject"] }, call: Call) => Awaitable<unknown>;
}

/** Throws TypeError when a hidden argument is also a parameter. */
export function tool<P extends z.ZodObject, H extends Record<string, Injected<unknown>> = Record<never, never>>(
  spec: ToolSpec<P, H>,
): AnyTool {
  const hidden = Object.keys(spec.hidden ?? {});
  const both = hidden.find((name) => Object.hasOwn(spec.parameters.shape, name));
  if (both !== undefined) throw new TypeError(`tool ${spec.name}: ${both} is hidden and a parameter`);
  return {
    name: spec.name,
    description: spec.description,
    // The schema tells the model that nothing else is taken; what it sends nevertheless is an error, not ignored.
    parameters: spec.parameters.strict(),
    hidden,
    idempotent: spec.idempotent ?? true,
    run: spec.run,
  };
}

/** Declares the type of a hidden argument; there is nothing behind it at run time. */
export function inject<T>(): Injected<T> {
  return {} as Injected<T>;
}

/** What is sent to the model. */
export function toolDefinition(tool: AnyTool): ToolDefinition {
  return {
    type: "function",
    function: {
      name: tool.name,
      description: tool.description,
      ...toolSchema(tool.name, tool.parameters),
    },
  };
}
