/**
 * The players that the policy imitates, one per environment: they know the format, but not the skill.
 *
 * Invariants: a demonstrator plays a little better than chance and has a wrong favourite, so its most likely action is
 * bad. A policy that imitates it can call a tool and has something to unlearn. It uses only the conversation and its
 * random numbers.
 */
import { type Messages, textOf } from "../../src/contract/messages.ts";
import type { Reply } from "../../src/core/testing.ts";

export type Demonstrator = (messages: Messages, random: () => number) => Reply;

export const DEMONSTRATORS: Readonly<Record<string, Demonstrator>> = {
  calculator,
  "guess-number": guessNumber,
  "grid-walk": gridWalk,
  "reverse-text": reverseText,
};

const TOOL_FOR_SIGN = new Map([
  ["+", "add"],
  ["-", "subtract"],
  ["*", "multiply"],
]);

/** Prefers `add` whatever the question, often mistakes an operand, and repeats seven results of ten. */
function calculator(messages: Messages, random: () => number): Reply {
  const anyNumber = () => String(below(30, random));
  const result = lastToolReply(messages);
  if (result !== null) return random() < 0.7 ? result : anyNumber();
  if (random() < 0.2) return anyNumber();
  const [, a = "", sign = "", b = ""] = question(messages).match(/(\d+) ([-+*]) (\d+)/) ?? [];
  const right = TOOL_FOR_SIGN.get(sign) ?? "add";
  const choice = random();
  const tool = choice < 0.2 ? right : choice < 0.6 ? "add" : pick([...TOOL_FOR_SIGN.values()], random);
  const mistaken = random() < 0.3 ? pick(["a", "b"], random) : null;
  const operand = (name: string, value: string) => `"${name}": ${name === mistaken ? 1 + below(9, random) : value}`;
  return call(tool, `{${operand("a", a)}, ${operand("b", b)}}`);
}

/** Prefers the number 1, however often it was wrong; two guesses of five are inside the remaining range. */
function guessNumber(messages: Messages, random: () => number): Reply {
  const [low = 1, high = 1] = lastRange(lastToolReply(messages) ?? question(messages));
  const [, max = 1] = lastRange(question(messages));
  const choice = random();
  const anywhere = choice < 0.7 ? 1 : 1 + below(max, random);
  const number = choice < 0.4 ? low + below(high - low + 1, random) : anywhere;
  return call("guess", `{"number": ${number}}`);
}

function lastRange(text: string): number[] {
  return (text.match(/(\d+) to (\d+)/) ?? []).slice(1).map(Number);
}

/** Prefers `up`; one step of four leads nearer. */
function gridWalk(messages: Messages, random: () => number): Reply {
  const [startX, startY, goalX, goalY] = numbersIn(question(messages));
  const [x, y] = numbersIn(lastToolReply(messages) ?? `${startX} ${startY}`);
  const across = difference(goalX, x);
  const along = difference(goalY, y);
  const nearer = [
    ...(across === 0 ? [] : [across > 0 ? "right" : "left"]),
    ...(along === 0 ? [] : [along > 0 ? "up" : "down"]),
  ];
  const choice = random();
  const direction =
    choice < 0.25 && nearer.length > 0
      ? pick(nearer, random)
      : choice < 0.6
        ? "up"
        : pick(["up", "down", "left", "right"], random);
  return call("move", `{"direction": "${direction}"}`);
}

function difference(goal: number | undefined, place: number | undefined): number {
  return (goal ?? 0) - (place ?? 0);
}

/** Copies every other word, reverses three of ten, and shuffles the rest. */
function reverseText(messages: Messages, random: () => number): Reply {
  const letters = [...question(messages).replace("Reverse: ", "")];
  const choice = random();
  if (choice < 0.5) return letters.join("");
  return (choice < 0.8 ? letters.reverse() : shuffle(letters, random)).join("");
}

function call(name: string, args: string): Reply {
  return { tool_calls: [{ name, arguments: args }] };
}

function question(messages: Messages): string {
  return textOf(messages.find((message) => message.role === "user"));
}

function lastToolReply(messages: Messages): string | null {
  const reply = messages.findLast((message) => message.role === "tool");
  return reply === undefined ? null : textOf(reply);
}

function numbersIn(text: string): number[] {
  return Array.from(text.matchAll(/\d+/g), ([digits]) => Number(digits));
}

function below(limit: number, random: () => number): number {
  return Math.floor(random() * limit);
}

function pick(from: readonly string[], random: () => number): string {
  return from[below(from.length, random)] ?? "";
}

/** Fisher and Yates. */
function shuffle(letters: readonly string[], random: () => number): string[] {
  const out = [...letters];
  for (let at = out.length - 1; at > 0; at -= 1) {
    const other = below(at + 1, random);
    [out[at], out[other]] = [out[other] ?? "", out[at] ?? ""];
  }
  return out;
}
