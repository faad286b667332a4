/** Makes conversations to learn from: demonstrators in the real environments, rendered with the real chat template. */

import { renderChat } from "@rollcall/policy/chat-template";
import { ASSISTANT, END } from "@rollcall/policy/tokenizer";
import { seededRandom } from "../../src/contract/random.ts";
import { type Field, play, templateMessage } from "./playing-field.ts";

/**
 * A conversation as the policy reads it, with the weight of each token in the loss; the first token is never predicted.
 */
export interface Example {
  readonly ids: readonly number[];
  readonly weights: readonly number[];
}

/** Tokens of other roles have a small weight, which helps the policy to read them. */
const HEARD_WEIGHT = 0.1;

/** Seed 1 is for learning; measurements use other seeds. */
const LEARNING_SEED = 1;

export async function demonstrate(field: Field, count: number): Promise<Example[]> {
  const examples: Example[] = [];
  for (let index = 0; index < count; index += 1) {
    const random = seededRandom("demonstrator", field.id, index);
    const { messages } = await play(field.environment, index, LEARNING_SEED, (request) =>
      field.demonstrator(request.messages, random),
    );
    examples.push(exampleOf(renderChat(messages.map(templateMessage), { addGenerationPrompt: false })));
  }
  return examples;
}

/** The assistant's tokens have weight 1, including `<|end|>`. */
function exampleOf(ids: readonly number[]): Example {
  let speaking = false;
  const weights = ids.map((id) => {
    const weight = speaking ? 1 : HEARD_WEIGHT;
    if (id === ASSISTANT) speaking = true;
    if (id === END) speaking = false;
    return weight;
  });
  return { ids, weights };
}
