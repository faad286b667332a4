/** The fields that are read from vLLM's reply to `POST /tokenize`. `max_model_len`: the model's context, in tokens. */
import * as z from "zod";
import { Ids } from "./bounded-lists.ts";

export const Tokenized = z.object({ tokens: Ids, max_model_len: z.int().positive().nullish().catch(null) });
export type Tokenized = z.output<typeof Tokenized>;
