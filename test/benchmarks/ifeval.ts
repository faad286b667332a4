/** IFEval against `process_results` of lm-eval: every instruction, followed and not, at its edges. */

import { loadEnvironment } from "../../environments/ifeval/environment.ts";
import { INSTRUCTION_IDS } from "../../environments/ifeval/instructions.ts";
import { type Answer, type Benchmark, type Draw, generate, scoresOf } from "./benchmark.ts";
import { SENTENCES, TEXTS } from "./texts.ts";

type Args = Readonly<Record<string, unknown>>;

const PROMPT = "Write a short text about a harbour.";
const relation = (draw: Draw) => draw.of(["less than", "at least"]);

function sentences(draw: Draw, count: number): string {
  return Array.from({ length: count }, () => draw.of(SENTENCES)).join(draw.of([" ", " ", "\n", "\n\n", "  "]));
}

/** The row's arguments as the published data has them: every name, most of them null. */
const NAMES = ["keywords", "keyword", "frequency", "relation", "num_words", "language", "prompt_to_repeat", "letter"];

function answer(id: string, args: Args, reply: string): Omit<Answer, "kind"> {
  const kwargs = [{ ...Object.fromEntries(NAMES.map((name) => [name, null])), ...args }];
  return { row: { key: 1, prompt: PROMPT, instruction_id_list: [id], kwargs }, reply };
}

const list = (draw: Draw, count: number, write: (draw: Draw) => string) =>
  Array.from({ length: count }, () => write(draw)).join("\n");

/** langdetect takes them for another language, in capitals. */
const MISTAKEN: readonly [string, ...string[]] = [
  "Really?! Yes.",
  "J. R. Miller and P. Brown wrote a book about ropes, nets, etc. for sailors.",
  "Dr. Smith went to Washington on Jan. 5 with Mrs. Jones.",
];
const PLAIN: readonly [string, ...string[]] = [
  "A plain text for all who read it in the morning.",
  ...SENTENCES.filter((sentence) => !MISTAKEN.includes(sentence)),
];

/** How replies for an instruction are made; the arguments are drawn so that about half of them follow it. */
const MAKERS: Readonly<Record<string, (draw: Draw) => readonly [Args, string]>> = {
  "keywords:existence": (draw) => [
    { keywords: [draw.of(["harbour", "Boat", "sea-gull"]), draw.of(["rope", "café", "tide"])] },
    `${sentences(draw, 1)} The ${draw.of(["harbour", "boat", "sea-gull", "pier"])} has a ${draw.of(["ROPE", "café", "tidewater", "Tide"])}.`,
  ],
  "keywords:frequency": (draw) => [
    { keyword: draw.of(["boat", "sea "]), frequency: draw.whole(1, 4), relation: relation(draw) },
    `${draw.of(["Boats and boathouses.", "The SEA, the sea!", "A boat. A Boat."])} ${sentences(draw, 1)}`,
  ],
  "keywords:forbidden_words": (draw) => [
    { forbidden_words: [draw.of(["boat", "sea", "café"]), "never"] },
    draw.of([
      "Boats at the pier.",
      "A boat.",
      "Seaside; a CAFÉ.",
      "Overseas.",
      "Nevertheless, a sea-gull.",
      "cafés",
      "boat_house",
    ]),
  ],
  "keywords:letter_frequency": (draw) => [
    { letter: draw.of(["e", "A", "z"]), let_frequency: draw.whole(1, 12), let_relation: relation(draw) },
    draw.of(SENTENCES),
  ],
  "language:response_language": (draw) => {
    const [language, text] = draw.of(TEXTS);
    return [{ language: draw.whole(0, 2) === 0 ? draw.of(["en", "de", "hi", "ar"]) : language }, text];
  },
  "length_constraints:number_sentences": (draw) => {
    const count = draw.whole(1, 6);
    return [
      { num_sentences: Math.max(1, count + draw.whole(0, 2) - 1), relation: relation(draw) },
      sentences(draw, count),
    ];
  },
  "length_constraints:number_paragraphs": (draw) => {
    const count = draw.whole(1, 4);
    const text = Array.from({ length: count }, () => draw.of(SENTENCES)).join(
      draw.of(["\n***\n", " *** ", "***", "\n\n***\n\n", "\n****\n"]),
    );
    return [
      { num_paragraphs: Math.max(1, count + draw.of([0, 0, 1])) },
      draw.of(["", "", "***\n", "*** ***"]) + text + draw.of(["", "\n***"]),
    ];
  },
  "length_constraints:number_words": (draw) => [
    { num_words: draw.whole(5, 30), relation: relation(draw) },
    sentences(draw, draw.whole(1, 3)),
  ],
  "length_constraints:nth_paragraph_first_word": (draw) => {
    const words = draw.of(["Harbour", "'harbour,", '"Harbour"', "harbour.", "Harbours", "harbour's", "The harbour"]);
    const parts = [draw.of(SENTENCES), `${words} is there.`, draw.of(SENTENCES)].slice(0, draw.whole(2, 3));
    const text = parts.join(draw.of(["\n\n", "\n\n", "\n\n\n\n", "\n \n"]));
    return [{ num_paragraphs: parts.length + draw.of([0, 0, 0, 1]), nth_paragraph: 2, first_word: "harbour" }, text];
  },
  "detectable_content:number_placeholders": (draw) => [
    { num_placeholders: draw.whole(1, 3) },
    list(draw, draw.whole(1, 3), () =>
      draw.of(["Dear [name],", "[a [b] c]", "[open", "[]", "at [place] on [date]", "none"]),
    ),
  ],
  "detectable_content:postscript": (draw) => [
    { postscript_marker: draw.of(["P.S.", "P.P.S"]) },
    `${draw.of(SENTENCES)}\n${draw.of(["P.S. Come.", "p.s. come", "PS: come", "P. S. Come.", "P.P.S. Come", "P.P.S", "Post scriptum", "p. p. s"])}`,
  ],
  "detectable_format:number_bullet_lists": (draw) => {
    const count = draw.whole(1, 4);
    const bullet = (of: Draw) =>
      of.of(["* point", "- point", "  * point", "** bold **", "*", "* *", "-", "1. point", "\t- point", "", "---"]);
    return [{ num_bullets: Math.max(1, count - draw.of([0, 0, 1])) }, list(draw, count, bullet)];
  },
  "detectable_format:constrained_response": (draw) => [
    {},
    draw.of([
      "My answer is yes.",
      "my answer is no.",
      "I think: My answer is maybe. Yes.",
      "My answer is no",
      "Yes.",
      "**My answer is yes.**",
    ]),
  ],
  "detectable_format:number_highlighted_sections": (draw) => [
    { num_highlights: draw.whole(1, 4) },
    list(draw, draw.whole(1, 3), () =>
      draw.of(["*one*", "**two** and *three*", "* item", "*a* *b*", "***four***", "**", "*open", "* *", "__no__"]),
    ),
  ],
  "detectable_format:multiple_sections": (draw) => {
    const splitter = draw.of(["SECTION", "Section", "Day", "PARAGRAPH "]);
    const count = draw.whole(1, 4);
    const text = Array.from(
      { length: count },
      (_, at) => `${splitter.trim()}${draw.of([" ", "", " ", "  "])}${at + 1}\n${draw.of(SENTENCES)}`,
    ).join("\n");
    return [
      { section_spliter: splitter, num_sections: Math.max(1, count + draw.of([0, 0, 1])) },
      draw.of([text, text, text.toLowerCase()]),
    ];
  },
  "detectable_format:json_format": (draw) => [
    {},
    draw.of([
      ...([
        '{"a": [1, 2.5e3, null]}',
        '```json\n{"a": 1}\n```',
        "```\n[true]\n```",
        "```JSON {} ```",
        '"text"',
        "7",
        "{'a': 1}",
      ] as const),
      ...['{"a": 1,}', 'Here: {"a": 1}', '```json\n{"a": 1}', "", "nothing", '{"a": "line\nbreak"}', '{"a":1}{"b":2}'],
    ]),
  ],
  "detectable_format:title": (draw) => [
    {},
    draw.of([
      "<<A Harbour>>\nText",
      "<< >>",
      "<A Harbour>",
      "<<>>",
      "Text <<x>> and <<y>>",
      "<<open\nclosed>>",
      "<<<<>>>>",
      "<<<a>>>",
      "<< a",
    ]),
  ],
  "combination:two_responses": (draw) => [
    {},
    draw.of([
      "One.\n******\nTwo.",
      "One.******One.",
      "One.",
      "******One.******Two.******",
      "One.****** ******Two.",
      "One.\n***\nTwo.",
      "A******B******C",
      "One. ****** One.\n",
    ]),
  ],
  "combination:repeat_prompt": (draw) => [
    { prompt_to_repeat: PROMPT },
    draw.of([
      `${PROMPT}\n\nA text.`,
      `  ${PROMPT.toUpperCase()} Text.`,
      `Sure! ${PROMPT}`,
      "A text.",
      `Sure!\n${PROMPT} A text.`,
      `**${PROMPT}**`,
      PROMPT.slice(0, -1),
    ]),
  ],
  "startend:end_checker": (draw) => [
    { end_phrase: draw.of(["Any other questions?", " That is all. "]) },
    `${draw.of(SENTENCES)} ${draw.of(["Any other questions?", 'any other questions?"', "That is ALL.", "Any other questions? No.", "That is all", "**That is all.**", "That is all.\n\nBye!"])}`,
  ],
  "startend:quotation": (draw) => [
    {},
    draw.of([
      '"A text."',
      ' "A\ntext." \n',
      '"A text.',
      '"',
      '""',
      "“A text.”",
      "'A text.'",
      '**"A text."**',
      'Here:\n"A text."',
      "A text.",
    ]),
  ],
  "change_case:capital_word_frequency": (draw) => [
    { capital_frequency: draw.whole(1, 6), capital_relation: relation(draw) },
    list(draw, draw.whole(1, 2), () =>
      draw.of([
        ...([
          "THE BOAT IS HERE.",
          "I think IT'S A BOAT!",
          "DON'T STOP",
          "a WELL-KNOWN BOAT",
          "AND/OR",
          "The U.S. NAVY, A.M.",
          "no capitals",
        ] as const),
        ...[
          '"STOP!" HE said.',
          "CANNOT; GONNA",
          "3D and 4K",
          "(BIG) [BOATS] {HERE}",
          "ROCK 'N' ROLL",
          "WE'LL GO... NOW",
          "X: Y,Z",
          "ÉTÉ À PARIS",
        ],
      ]),
    ),
  ],
  "change_case:english_capital": (draw) => [
    {},
    draw.of([
      draw.of(PLAIN).toUpperCase(),
      `${draw.of(PLAIN)} ${draw.of(PLAIN)}`.toUpperCase(),
      draw.of(PLAIN),
      "DIE BOOTE LIEGEN IM HAFEN UND WARTEN AUF DIE FLUT.",
      "123 456",
      "THE BOATS LIE IN THE HARBOUR and wait.",
    ]),
  ],
  "change_case:english_lowercase": (draw) => [
    {},
    draw.of([
      draw.of(PLAIN).toLowerCase(),
      `${draw.of(PLAIN)} ${draw.of(PLAIN)}`.toLowerCase(),
      draw.of(PLAIN),
      "die boote liegen im hafen und warten auf die flut.",
      "123 456",
      "the boats lie in the harbour and Wait.",
    ]),
  ],
  "punctuation:no_comma": (draw) => [
    {},
    draw.of(["A text without it.", "One, two.", "１，２", "a; b", "1,000", "Note, first line.\nThe rest has none."]),
  ],
};

const NOTES = ["", "", "", "Sure! Here it is:\n", "Sure:\n\n"] as const;
const KINDS = Object.fromEntries(
  INSTRUCTION_IDS.map((id) => [
    id,
    (draw: Draw) => {
      const [args, reply] = MAKERS[id]?.(draw) ?? [{}, ""];
      // A remark in English changes the language of a text.
      if (/^(language|change_case:english)/.test(id)) return answer(id, args, reply);
      return answer(id, args, draw.of(NOTES) + reply + draw.of(["", "", "\n\nI hope this helps."]));
    },
  ]),
);

/** What our checks decide otherwise. */
const SPECIAL = {
  "an English remark before another language": (draw: Draw) => {
    const [, text] = draw.of(TEXTS);
    return answer("language:response_language", { language: "en" }, `Sure:\n\n${text}`);
  },
  "a short English text in capitals": (draw: Draw) => {
    return answer("change_case:english_capital", {}, draw.of(MISTAKEN).toUpperCase());
  },
  "JSON with NaN": () => answer("detectable_format:json_format", {}, '{"share": NaN}'),
};

const NOT_JSON = "NaN is not JSON; Python's reader takes it";
const SHORT = "langdetect errs on short texts in capitals; function words decide better";

const environment = await loadEnvironment();

export const IFEVAL: Benchmark = {
  name: "ifeval",
  answers: generate((INSTRUCTION_IDS.length + 3) * 40, 25, { ...KINDS, ...SPECIAL }),
  score: async (given) => {
    const { reward, metrics } = await scoresOf(environment, given);
    return { prompt_strict: reward === 1, prompt_loose: metrics["prompt_loose"] === 1 };
  },
  deviations: {
    "prompt_strict: JSON with NaN": NOT_JSON,
    "prompt_loose: JSON with NaN": NOT_JSON,
    "prompt_loose: an English remark before another language":
      "the remark alone is English; langdetect errs on one word",
    "prompt_strict: a short English text in capitals": SHORT,
    "prompt_loose: a short English text in capitals": SHORT,
  },
};
