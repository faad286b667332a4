import { expect, test } from "vitest";
import { isThoughtTag, withoutThoughts } from "../../../src/core/parsers/thoughts.ts";
import { XMLParser } from "../../../src/core/parsers/xml-parser.ts";

// Where each form is documented: the reasoning parsers of vLLM (docs.vllm.ai, api/vllm/reasoning) and of SGLang and
// Dynamo; the chat formats of llama.cpp; the cards of the models; harmony: OpenAI's cookbook, "openai harmony response
// format". Servers without the parser of a model leave its marks in `content`.
const FORMS: readonly [family: string, text: string][] = [
  ["DeepSeek R1, Qwen3, QwQ, GLM, MiniMax, Step, Olmo 3, Phi-4", "<think>\nRome?\n</think>\n\nParis"],
  ["the same, opened by the chat template", "Rome? No.\n</think>\n\nParis"],
  ["Qwen3 told not to think", "<think>\n\n</think>\n\nParis"],
  ["Claude in prompts that ask for it, Nova", "<thinking>Rome?</thinking>\nParis"],
  ["Claude in older products", "<antThinking>Rome?</antThinking>Paris"],
  ["Anthropic's own prefix", "<NAME>Rome?</NAME>Paris".replaceAll("NAME", "antml:thinking")],
  ["EXAONE Deep", "<thought>\nRome?\n</thought>\n\nParis"],
  ["Marco-o1", "<Thought>Rome?</Thought>Paris"],
  ["plural", "<thoughts>Rome?</thoughts>Paris"],
  ["prompts of GRPO recipes", "<reasoning>\nRome?\n</reasoning>\nParis"],
  ["prompts of Open WebUI", "<reason>Rome?</reason>Paris"],
  ["prompts of Hermes", "<SCRATCHPAD>Rome?</SCRATCHPAD>Paris"],
  ["prompts that ask for a monologue", "<inner_monologue>Rome?</inner_monologue>Paris"],
  ["Seed-OSS", "<seed:think>Rome?</seed:think>Paris"],
  ["LongCat", "<longcat_think>\nRome?\n</longcat_think>\nParis"],
  ["Hunyuan", "<think:opensource>Rome?</think:opensource>Paris"],
  ["Magistral", "[THINK]Rome?[/THINK]Paris"],
  ["Magistral, opened by the template", "Rome?[/THINK]Paris"],
  ["Kimi-VL, Kimi-Dev", "◁think▷Rome?◁/think▷Paris"],
  ["Command A Reasoning", "<|START_THINKING|>Rome?<|END_THINKING|><|START_RESPONSE|>Paris<|END_RESPONSE|>"],
  [
    "OpenThinker, Sky-T1",
    "<|begin_of_thought|>\nRome?\n<|end_of_thought|>\n\n<|begin_of_solution|>\nParis\n<|end_of_solution|>",
  ],
  ["Apertus", "<|inner_prefix|>Rome?<|inner_suffix|>Paris"],
  ["Gemma 4", "<|channel>thought\nRome?<channel|>Paris<turn|>"],
  ["Gemma 4, opened by the template", "Rome?<channel|>Paris"],
  ["MedGemma", "<unused94>thought\nRome?<unused95>Paris"],
  ["Solar Open", "<|think|>Rome?<|end|><|begin|>assistant<|content|>Paris<|end|>"],
  ["Granite 3", "Here is my thought process:\nRome?\n\nHere is my response:\nParis"],
  ["Granite 3, quantised", "Here's my thought process: Rome? Here's my response: Paris"],
  ["gpt-oss", "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>final<|message|>Paris<|return|>"],
  ["gpt-oss whose template wrote the channel", "analysis<|message|>Rome?<|end|><|channel|>final<|message|>Paris"],
  ["gpt-oss whose template wrote the header", "Rome?<|end|><|start|>assistant<|channel|>final<|message|>Paris"],
  ["gpt-oss that only answers", "<|channel|>final <|constrain|>text<|message|>Paris<|return|>"],
  ["gpt-oss behind its header", "Paris<|return|>"],
  [
    "gpt-oss with a preamble and a call",
    "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant<|channel|>commentary<|message|>I look it up: Rome" +
      "<|end|><|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{}<|call|>" +
      "<|start|>functions.look to=assistant<|channel|>commentary<|message|>Rome<|end|>" +
      "<|start|>assistant<|channel|>final<|message|>Paris",
  ],
  ["gpt-oss whose signs the server removed", "analysisThe user asks. Rome? No.assistantfinalParis"],
  ["gpt-oss whose signs and first channel are gone", "The user asks. Rome? No.assistantfinalParis"],
];

test.each(FORMS)("the thoughts of %s are removed", (_family, text) => {
  expect(withoutThoughts(text)).toBe("Paris");
});

test.each([
  ["any capitals", "<THINK>Rome?</Think>Paris"],
  ["capitals in brackets", "[Think]Rome?[/think]Paris"],
  ["white space in the tag", "<think >Rome?</think\n>Paris"],
  ["attributes", '<thought signature="AbC1=" kind="x">Rome?</thought>Paris'],
  ["nested", "<think>a <think>Rome?</think> Rome</think>Paris"],
  ["nested in other spellings", "<thinking>a [THINK]Rome?[/THINK] Rome</thinking>Paris"],
  ["closed by another spelling", "<think>Rome?</thinking>Paris"],
  ["opened twice in a row", "<think>\n<think>\nRome?\n</think>\nParis"],
  ["opened once more inside", "<think>I said <think> Rome?</think>Paris"],
  ["several in a row", "<think>Rome</think>\n<think>Rome</think>[THINK]Rome[/THINK]\nParis"],
  ["several that the template began", "Rome</think>Rome, again</think>Paris"],
  ["behind the answer", "Paris\n<think>or Rome?</think>"],
  ["behind the answer and never closed", "Paris\n<think>or Rome"],
  ["closed once too often, behind the answer", "<think>Rome</think>Paris</think>\n"],
  ["a tag that closes itself", "<think/>Paris"],
  ["with code left open", "<think>```py\nrome()\n</think>\nParis"],
  ["with code closed on the line of the mark, begun by the template", "```\nrome()\n```</think>\nParis"],
  ["that end with a word like element", "is it the third element </think> Paris"],
  ["with a quoted mark", "<think>I close with `</think>`. Rome</think>Paris"],
  ["with a mark in a text of JSON", '<think>{"say": "</think> Rome"}</think>Paris'],
])("thoughts are removed: %s", (_how, text) => {
  expect(withoutThoughts(text)).toBe("Paris");
});

test.each([
  ["<think>Paris"],
  ["\n <thinking>\nParis"],
  ["[THINK]Paris"],
  ["Rome? Paris.\n</think>\n"],
  ["<think>Rome</think>\n<think>Paris"],
  ["<|channel|>analysis<|message|>Paris"],
  ["<|channel|>analysis<|message|>Rome<|end|><|start|>assistant<|channel|>commentary<|message|>Paris"],
  ["<|channel>thought\nParis"],
  ["<|think|>Paris"],
  ["analysisWe need the capital. Paris"],
])("%j is a thought and not an answer", (text) => {
  expect(withoutThoughts(text)).toBe("");
});

test.each([
  ["in a code span", "Write `<think>` first, then answer."],
  ["in a longer code span", "Use `a <think> b` here."],
  ["a closing mark in a code span", "It ends with `</think>`."],
  ["in quotation marks", 'The prompt ends with "<think>" in it.'],
  ["in a call", "text.split('</think>')[1]"],
  ["in brackets", "an opening tag (<think>) and no more"],
  ["in a fenced block", "So:\n```xml\n<think>a</think>\n<answer>b</answer>\n```"],
  ["alone in a fenced block of a language", "```html\n<think>a</think>\n```"],
  ["a closing mark in a line of code", "```py\ncut = re.sub(r'.*</think>', '', said)\n```"],
  ["in a text of JSON", '{"reason": "it has no </think> at all", "ok": true}'],
  ["in a list of JSON", '[\n  "a <think> b",\n  "c"\n]'],
  ["called a tag", "The </think> tag ends it."],
  ["called a token", "It stops at the token </think> and answers."],
  ["as a word", "Models write <think> before they answer."],
  ["harmony's in a code span", "gpt-oss writes `<|channel|>final<|message|>` first."],
  ["words that are no marks", "I think [think twice] that <b>thinking</b> is thought."],
  ["a comparison", "a <think and b> c"],
  ["an analysis", "analysis of variance says 5"],
  ["a process", "Here is my thought process: first 2, then 3. The answer is 5."],
  ["white space around", " as it is \n"],
  ["nothing", ""],
])("a text without thoughts is unchanged: a mark %s", (_where, text) => {
  expect(withoutThoughts(text)).toBe(text);
});

test("a reply in a block without a language may begin with its thoughts", () => {
  expect(withoutThoughts("```\n<think>Rome</think>\nParis\n```")).toBe("```\n\nParis\n```");
});

test("an answer in quotation marks is kept after a thought that ends in quotation marks", () => {
  expect(withoutThoughts('<think>Is it "Rome"</think>"Paris"')).toBe('"Paris"');
});

test("words on both sides of a thought do not become one word", () => {
  expect(withoutThoughts("1<think>or 2</think>3")).toBe("1\n3");
});

test("tags of thoughts are recognised by name", () => {
  expect(["think", "Thinking", "seed:think", "reasoning"].every(isThoughtTag)).toBe(true);
  expect(["answer", "rethink", "thinker", ""].some(isThoughtTag)).toBe(false);
});

test.each([
  "<think>",
  "</think>",
  "<think>a",
  "a</think>",
  "<think>a</think>",
  '"<think>',
  "`<think>",
  '<think a="',
  "<|channel|>",
  "<|message|>a",
  "<|end|>",
  "```\n<think>\n",
  "```\n</think>\n```\n",
  " <think> tag",
  "assistantfinal",
])("%j 100,000 times over is read in linear time", (piece) => {
  const reply = `analysisWe ${piece.repeat(100_000)}`;
  // Quadratic time would take minutes, beyond any test's limit.
  expect(withoutThoughts(reply).length).toBeLessThanOrEqual(reply.length);
});

test("white space before many marks is scanned once", () => {
  const blank = " ".repeat(300_000);
  for (const begin of [`${blank}\`\`\`\n${blank}`, `x\n\`\`\`\n${blank}`]) {
    const reply = `${begin}${"<think></think>x".repeat(50_000)}${"</think>".repeat(50_000)}\n\`\`\`\n`;
    expect(withoutThoughts(reply).length).toBeLessThanOrEqual(reply.length);
  }
});

test("D21: a draft in the thoughts is not a field for an XML parser, unless the field is the thoughts", () => {
  const parser = new XMLParser(["think", "answer"]);
  const reply = "<think>maybe <answer>Rome</answer>?</think><answer>Paris</answer>";
  expect(parser.parseAnswer([{ role: "assistant", content: reply }])).toBe("Paris");
  expect(parser.parseAnswer([{ role: "assistant", content: "<think><answer>Paris</answer>" }])).toBeNull();
  expect(parser.parse(reply)).toMatchObject({ think: "maybe <answer>Rome</answer>?" });
  expect(new XMLParser(["think"], "think").parseAnswer("<think>why</think>4")).toBe("why");
});
