/** Parsers: the parts of a text, and how well it keeps its format. */

import { extractBoxedAnswer } from "@rollcall/math-equivalence";
import * as z from "zod";
import { normalizeMessages } from "../../../src/contract/messages.ts";
import { extractHashAnswer, MaybeThinkParser, Parser, ThinkParser } from "../../../src/core/parsers/parser.ts";
import { type XMLField, XMLParser } from "../../../src/core/parsers/xml-parser.ts";
import { type Drivers, driver } from "../driver.ts";

const Fields = z.array(z.union([z.string(), z.array(z.string())]));
const RawMessages = z.array(z.looseObject({ role: z.string() }));
const Completion = z.union([z.string(), RawMessages]).transform((completion) =>
  // A text stays a text: parsers treat it differently from a list of one message.
  typeof completion === "string" ? completion : normalizeMessages(completion),
);
const Text = z.object({ text: z.string() });

export const PARSERS: Drivers = {
  xml_format_reward: driver(z.object({ fields: Fields, completion: Completion }), ({ fields, completion }) =>
    new XMLParser(fields).formatReward(completion),
  ),
  xml_parse: driver(
    // `strip` changes nothing in the reference either, so our parser has no such option.
    z.object({ fields: Fields, text: z.string(), last: z.boolean().default(false) }),
    ({ fields, text, last }) => new XMLParser(fields).parse(text, { last }),
  ),
  xml_parse_answer: driver(z.object({ fields: Fields, completion: Completion }), ({ fields, completion }) =>
    new XMLParser(fields).parseAnswer(completion),
  ),
  xml_format: driver(
    z.object({
      fields: Fields,
      values: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    }),
    ({ fields, values }) => new XMLParser(fields).format(values),
  ),
  xml_format_str: driver(z.object({ fields: Fields }), ({ fields }) => new XMLParser(fields).formatDescription()),
  // May be malformed; the constructor must detect that.
  xml_ctor: driver(z.object({ fields: z.custom<readonly XMLField[]>() }), ({ fields }) => ({
    fields: new XMLParser(fields).fields,
  })),
  think: driver(Text, ({ text }) => ({
    think_parse: new ThinkParser().parse(text),
    maybe_parse: new MaybeThinkParser().parse(text),
    think_format: new ThinkParser().formatReward([{ role: "assistant", content: text }]),
  })),
  think_format_multi: driver(z.object({ completion: Completion }), ({ completion }) =>
    new ThinkParser().formatReward(completion),
  ),
  base_parse_answer: driver(z.object({ completion: Completion }), ({ completion }) =>
    new Parser().parseAnswer(completion),
  ),
  boxed: driver(Text, ({ text }) => ({
    lenient: extractBoxedAnswer(text),
    strict: extractBoxedAnswer(text, true),
  })),
  hash_answer: driver(Text, ({ text }) => extractHashAnswer(text)),
};
