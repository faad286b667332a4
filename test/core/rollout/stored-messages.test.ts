/** What an agent sends back of a conversation, and what is stored of it. */
import { expect, test } from "vitest";
import type { Message, Messages } from "../../../src/contract/messages.ts";
import { storedPrompt } from "../../../src/core/rollout/stored-messages.ts";

const USER: Message = { role: "user", content: "Add." };

function called(args: string, more: Partial<Message> = {}): Message {
  const call = { id: "c1", type: "function", function: { name: "add", arguments: args } } as const;
  return { role: "assistant", content: null, tool_calls: [call], ...more };
}

function back(completion: Message, given: Message): Message | undefined {
  const prompt = { keep: 0, append: [USER] as Messages };
  return storedPrompt([USER, given], [{ prompt, completion }]).prompt[1];
}

test("a message of the model comes back as it is stored, with its reasoning and what its server needs", () => {
  const stored = called("{}", { reasoning_content: "hm", provider_fields: '{"signature":"s"}' });
  expect(back(stored, called("{}", { content: "" }))).toBe(stored);
});

test("a tool call whose arguments an agent writes with other spaces or in another order is the stored one", () => {
  const stored = called('{"a":20,"b":[1,{"c":null}]}');
  expect(back(stored, called('{"a": 20, "b": [1, {"c": null}]}'))).toBe(stored);
  expect(back(stored, called('{"b": [1, {"c": null}], "a": 20}'))).toBe(stored);
});

test("a tool call with other arguments, or with none that are JSON, is the agent's own", () => {
  const stored = called('{"a":20}');
  for (const args of [
    '{"a":21}',
    '{"a":20',
    "[20]",
    "[".repeat(100_000),
    `{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`,
  ]) {
    const given = called(args);
    expect(back(stored, given)).toBe(given);
  }
  const broken = called('{"a": ');
  expect(back(broken, called('{"a": '))).toBe(broken);
});

test("a message of the model that an agent moves to another place is the stored one", () => {
  const stored = called('{"a":20}', { reasoning_content: "hm" });
  const prompt = { keep: 0, append: [USER] as Messages };
  expect(storedPrompt([called('{"a": 20}')], [{ prompt, completion: stored }])).toEqual({
    prompt: [stored],
    continues: { keep: 0 },
  });
});

const said = (content: string, more: Partial<Message> = {}): Message => ({ role: "assistant", content, ...more });
const user = (content: string): Message => ({ role: "user", content });

test("a prompt continues the conversation that begins with most of its messages", () => {
  const turns = [
    { prompt: { keep: 0, append: [user("main")] }, completion: said("one") },
    { prompt: { keep: 0, append: [user("side")] }, completion: said("two") },
  ];
  const continues = (...messages: Messages) => storedPrompt(messages, turns).continues;
  expect(continues(user("main"), said("one"), user("more"))).toEqual({ after: 0, keep: 2 });
  expect(continues(user("main"), user("again"))).toEqual({ after: 0, keep: 1 });
  expect(continues(user("side"), said("two"), user("more"))).toEqual({ keep: 2 });
  expect(continues(user("new"))).toEqual({ keep: 0 });
  expect(storedPrompt([user("main")], []).continues).toEqual({ keep: 0 });
});

test("of conversations that share as much, it continues one that it contains as a whole", () => {
  const turns = [
    { prompt: { keep: 0, append: [user("main")] }, completion: said("one") },
    { prompt: { keep: 2, append: [user("more")] }, completion: said("two") },
  ];
  const beside = [user("main"), said("one"), user("other")];
  expect(storedPrompt(beside, turns).continues).toEqual({ after: 0, keep: 2 });
});

test("equal answers of two conversations are each the one of their own conversation", () => {
  const first = said("yes", { reasoning_content: "first" });
  const turns = [
    { prompt: { keep: 0, append: [user("main")] }, completion: first },
    { prompt: { keep: 0, append: [user("side")] }, completion: said("yes", { reasoning_content: "second" }) },
  ];
  const { prompt, continues } = storedPrompt([user("main"), said("yes"), user("more")], turns);
  expect(prompt[1]).toBe(first);
  expect(continues).toEqual({ after: 0, keep: 2 });
});

test("a large message is read once, however many turns it is compared with", () => {
  const part = (text: string, onRead: () => void) => ({
    type: "text",
    get text() {
      onRead();
      return text;
    },
  });
  let reads = 0;
  const asked = [{ role: "user" as const, content: [part("new", () => (reads += 1))] }];
  const turns = Array.from({ length: 100 }, (_, at) => ({
    prompt: { keep: 0, append: [{ role: "user" as const, content: [{ type: "text", text: `old ${at}` }] }] },
    completion: { role: "assistant" as const, content: "a" },
  }));
  expect(storedPrompt(asked, turns).continues).toEqual({ keep: 0 });
  expect(reads).toBe(1);
});
