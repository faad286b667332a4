import { expect, test } from "vitest";
import type { Message } from "../../../src/contract/messages.ts";
import { taskText } from "../../../src/core/rollout/task-text.ts";

const user = (content: Message["content"]): Message => ({ role: "user", content });

test("a task's text is the last user message of its prompt, whatever precedes it", () => {
  const before: Message[] = [
    { role: "system", content: "You add numbers." },
    user("What is 1 + 1?"),
    { role: "assistant", content: "2" },
  ];
  expect(taskText([...before, user("What is 3 + 4?")])).toBe("What is 3 + 4?");
  expect(taskText([...before, user("What is 3 + 4?"), { role: "assistant", content: "It is" }])).toBe("What is 3 + 4?");
  expect(taskText([{ role: "text", content: "Once upon a time" }])).toBe("Once upon a time");
});

test("the text is one line, with single spaces", () => {
  expect(taskText([user("\n\n  Sort:\r\n\t3,\u00a01 \u2028 2  ")])).toBe("Sort: 3, 1 2");
});

test("of a message in parts the text is the words", () => {
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AA" } };
  expect(taskText([user([{ type: "text", text: "What is" }, picture, { type: "text", text: "this?" }])])).toBe(
    "What is this?",
  );
  expect(taskText([user([picture])])).toBeNull();
});

test("without words of a user there is no text", () => {
  for (const prompt of [[], [{ role: "system" as const, content: "Sing." }], [user("\n \n\t")], [user("")]]) {
    expect(taskText(prompt)).toBeNull();
  }
});

test("the text has at most 120 characters, with a mark if it is cut, and no half of a surrogate pair", () => {
  const whole = "x".repeat(120);
  expect(taskText([user(whole)])).toBe(whole);
  expect(taskText([user(`${whole}x`)])).toBe(`${"x".repeat(119)}…`);
  const words = taskText([user("word ".repeat(1_000_000))]);
  expect([words?.length, words?.slice(-6)]).toEqual([120, " word…"]);
  // The cut falls inside a surrogate pair, and then between two.
  for (const shift of ["", "a"]) {
    const text = taskText([user(shift + "😀".repeat(100))]);
    expect(text).toMatch(/😀…$/u);
    expect(text?.isWellFormed()).toBe(true);
    expect(text?.length).toBe(shift === "" ? 119 : 120);
  }
});
