/**
 * A wire form of a model address: the translation between a public API of models (OpenAI's chat completions and
 * Responses, Anthropic's messages) and the calls and replies of the platform. A translation is pure, and does not
 * change with time: a reply that is built again from the same `FormReply` has the same bytes.
 *
 * An agent sends back what it got. If a request contains an answer of this form, `parse` returns a message that is equal
 * to the one that `whole` or `events` got, key order included. The file of each form lists what it cannot carry.
 */
import type { JsonObject } from "../../contract/json.ts";
import type { FinishReason, Message, Messages, ToolDefinition, Usage } from "../../contract/messages.ts";
import type { Sampling } from "../../contract/sampling.ts";

/** What a call asks of the model, whatever its form. */
export interface AgentCall {
  readonly messages: Messages;
  readonly tools: readonly ToolDefinition[];
  /** Named fields where `Sampling` has them; everything else that the model's server should get is in `extra_body`. */
  readonly sampling: Sampling;
}

export interface FormRequest {
  readonly call: AgentCall;
  readonly stream: boolean;
  /** The model name that the agent wrote; the platform calls the run's own model. */
  readonly model: string;
  /** What a reply in this form needs of the request. */
  readonly echo: JsonObject;
}

export interface FormReply {
  /** The platform's id of the answer: letters, digits and `_`. Each form adds its own prefix. */
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly model: string;
  /** The message of the assistant, as `readChatCompletion` returns it. */
  readonly message: Message;
  readonly finish_reason: FinishReason;
  /** Null if it is unknown: the form then reports 0 where it requires a number. */
  readonly usage: Usage | null;
}

export interface Refusal {
  /** The HTTP status. */
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** The field that is wrong; null if no single field is. */
  readonly param: string | null;
}

export interface Form {
  readonly name: FormName;
  /** Throws `FormError`. */
  readonly parse: (body: unknown) => FormRequest;
  readonly whole: (reply: FormReply, echo: JsonObject) => JsonObject;
  /** The texts of the stream, from its first event to its last: each ends with an empty line. */
  readonly events: (reply: FormReply, echo: JsonObject) => Iterable<string>;
  readonly refusal: (refusal: Refusal) => JsonObject;
  /** The same as the last text of a stream that has begun. */
  readonly refusalEvents: (refusal: Refusal) => string;
}

export type FormName = "chat" | "responses" | "messages";

/** The request cannot be translated. */
export class FormError extends Error {
  override readonly name = "FormError";
  /** The path of the field that is wrong, as `messages[0].content`; null if no single field is. */
  readonly param: string | null;

  constructor(message: string, param: string | null) {
    super(message);
    this.param = param;
  }
}
