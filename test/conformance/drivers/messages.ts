/** Messages, errors and tokens. */
import * as z from "zod";
import { serializeError } from "../../../src/contract/errors.ts";
import { type Message, normalizeMessages } from "../../../src/contract/messages.ts";
import { cutTokens } from "../../../src/core/rollout/tokens.ts";
import { type Drivers, driver } from "../driver.ts";
import { errorClass } from "../error-classes.ts";

interface RecordedError {
  readonly type: string;
  readonly message: string;
  readonly cause?: RecordedError | null | undefined;
}
const RecordedError: z.ZodType<RecordedError> = z.object({
  type: z.string(),
  message: z.string(),
  get cause() {
    return RecordedError.nullish();
  },
});

export const MESSAGES: Drivers = {
  // The product itself must refuse what is not a message.
  normalize_messages: driver(z.unknown(), (value) => normalizeMessages(value).map(typedMessage)),
  error_data: driver(RecordedError, (recorded) => serializeError(made(recorded))),
  parse_response_tokens: driver(
    z.object({
      prompt_len: z.int(),
      completion_len: z.int(),
      max_seq_len: z.int().nullable(),
    }),
    ({ prompt_len, completion_len, max_seq_len }) => {
      const tokens = cutTokens(
        {
          prompt_ids: Array.from({ length: prompt_len }, (_, id) => id),
          completion_ids: Array.from({ length: completion_len }, (_, id) => 100 + id),
          completion_logprobs: Array.from({ length: completion_len }, () => -0.5),
        },
        max_seq_len,
      );
      return {
        prompt_len: tokens.prompt_ids?.length,
        completion_len: tokens.completion_ids?.length,
        logprobs_len: tokens.completion_logprobs?.length,
        overlong_prompt: tokens.overlong_prompt,
        is_truncated: tokens.is_truncated,
      };
    },
  ),
};

/** Our calls have OpenAI's format; the reference's typed messages have them flat. Null members are left out. */
function typedMessage({ tool_calls, ...message }: Message): object {
  const calls = tool_calls?.map(({ id, function: fn }) => ({ id, ...fn }));
  const members = Object.entries({ ...message, ...(calls && { tool_calls: calls }) });
  return Object.fromEntries(members.filter(([, value]) => value !== null && value !== undefined));
}

function made({ type, message, cause }: RecordedError): Error {
  return new (errorClass(type))(message, cause ? { cause: made(cause) } : undefined);
}
