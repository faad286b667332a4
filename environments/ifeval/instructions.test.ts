/** The parts of the checks; `test/benchmarks` holds whole checks against reference code. */
import { expect, test } from "vitest";
import { INSTRUCTIONS } from "./instructions.ts";
import { languageOf } from "./language.ts";
import { sentencesOf } from "./sentences.ts";
import { countCapitalWords, countWords, isLower, isUpper } from "./words.ts";

test("sentences end at marks, but not at abbreviations, initials and numbers", () => {
  expect(sentencesOf("Dr. Smith went at 5 p.m. to J. Miller. He paid $3.50! Why? “Because.” So it is")).toEqual([
    "Dr. Smith went at 5 p.m. to J. Miller.",
    "He paid $3.50!",
    "Why?",
    "“Because.”",
    "So it is",
  ]);
  expect(sentencesOf('He said "Stop." Then he left (at once.) Good.')).toHaveLength(3);
  expect(sentencesOf("The U.S. is large. It has harbours, i.e. piers. Boats, etc. go")).toHaveLength(5);
});

test.each([
  ["the boats and the harbour", "en"],
  ["Die Boote liegen im Hafen und warten.", "de"],
  ["Les bateaux sont dans le port.", "fr"],
  ["नावें बंदरगाह में खड़ी हैं।", "hi"],
  ["होड्या बंदरात उभ्या आहेत.", "mr"],
  ["Човни стоять у гавані.", "uk"],
  ["کشتیاں بندرگاہ میں کھڑی ہیں۔", "ur"],
  ["קלמנט said the boats are here", "en"],
  ["船は港で待っている。", "ja"],
  ["123 !", null],
])("the language of %j is %s", (text, code) => {
  expect(languageOf(text)).toBe(code);
});

test("addresses say nothing about the language", () => {
  const addresses = "info@hafen-und-boote.de (https://die-boote.de/und/der/hafen) ".repeat(20);
  expect(languageOf(`${addresses}The boats and the gulls of the harbour.`)).toBe("en");
  expect(languageOf("a@b.de https://c.de")).toBeNull();
});

test("words are runs of letters of all scripts, and capitals are counted as tokens", () => {
  expect(countWords("It's a well-known boat_house, café 7")).toBe(8);
  expect(countCapitalWords("IT'S A WELL-KNOWN boat, DON'T you see?")).toBe(6);
  expect([isUpper("ÉTÉ 5"), isUpper("Été"), isUpper("5"), isLower("été 5"), isLower("5")]).toEqual([
    true,
    false,
    false,
    true,
    false,
  ]);
});

test("a long reply of any kind is checked in a time that grows with its length", () => {
  const capitals = { capital_frequency: 1, capital_relation: "at least" };
  const checks = [
    INSTRUCTIONS["detectable_format:number_bullet_lists"].checkOf({ num_bullets: 1 }),
    INSTRUCTIONS["detectable_content:number_placeholders"].checkOf({ num_placeholders: 1 }),
    INSTRUCTIONS["detectable_format:number_highlighted_sections"].checkOf({ num_highlights: 1 }),
    INSTRUCTIONS["length_constraints:number_sentences"].checkOf({ num_sentences: 1, relation: "at least" }),
    INSTRUCTIONS["change_case:capital_word_frequency"].checkOf(capitals),
    INSTRUCTIONS["detectable_format:title"].checkOf({}),
    INSTRUCTIONS["startend:end_checker"].checkOf({ end_phrase: "end" }),
    INSTRUCTIONS["language:response_language"].checkOf({ language: "en" }),
  ];
  // If any of these took the square of its length, the test would not end.
  const runs = ["a", "@", " ", ")", "' ", ">", "http://"].map((unit) => unit.repeat(150_000 / unit.length));
  for (const run of runs) {
    for (const reply of [`<<${run} >>`, `A.${run}x`]) {
      for (const check of checks) expect(typeof check(reply)).toBe("boolean");
    }
  }
  for (const unit of ["\n", "* ", "[", "*a", ". ", "<<", '"', "a.", "A' ", " ", "?! ", "'"]) {
    const reply = unit.repeat(20_000 / unit.length);
    for (const check of checks) expect(typeof check(reply)).toBe("boolean");
  }
});
