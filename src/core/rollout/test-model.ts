/** A model that is a function: what it is asked, and what it may say. */
import type { FinishReason, Messages, ToolDefinition } from "../../contract/messages.ts";

export interface ModelRequest {
  readonly messages: Messages;
  readonly tools: readonly ToolDefinition[];
  /** 0 for the first call. */
  readonly turn: number;
}

/** What a model says: a text, or a text and tool calls. An object as arguments is sent as its JSON. */
export type Reply =
  | string
  | {
      readonly content?: string | null;
      readonly tool_calls?: readonly {
        readonly name: string;
        readonly arguments: string | object;
        readonly id?: string;
      }[];
      /** By default what the reply is: "tool_calls" or "stop". "length" marks the turn as truncated. */
      readonly finish_reason?: FinishReason;
      /** None by default, as from an endpoint that does not count. */
      readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
    };
/** An error of the library that it throws is what the endpoint would have failed with; any other is a bug of the test. */
export type TestModel = (request: ModelRequest) => Reply | Promise<Reply>;
