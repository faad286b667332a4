/**
 * The scripted model as its own process:
 *   node test/fakes/scripted-model-main.ts --behaviour echo|gold|altered [--dataset F.jsonl] [--port P] [--latency MS]
 *   [--log F]
 * Prints one JSON line, {url, pid}, when it listens. `gold` answers a question of the dataset with its answer;
 * `altered` does so too, with the last number of the answer increased by one.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as z from "zod";
import { textOf } from "../../src/contract/messages.ts";
import type { Reply } from "./completion-body.ts";
import { type ModelRequest, startScriptedModel } from "./scripted-model.ts";

const Row = z.object({ question: z.string(), answer: z.string() });

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    behaviour: { type: "string", default: "echo" },
    dataset: { type: "string" },
    latency: { type: "string", default: "0" },
    log: { type: "string" },
  },
});

const model = await startScriptedModel({
  reply: behaviour(values.behaviour),
  port: Number(values.port),
  latencyMs: Number(values.latency),
  ...(values.log !== undefined && { log: values.log }),
});
process.stdout.write(`${JSON.stringify({ url: model.url, pid: process.pid })}\n`);
process.once("SIGTERM", () => process.exit(0));

function behaviour(name: string): (request: ModelRequest) => Reply {
  switch (name) {
    case "echo":
      return lastUser;
    case "gold":
      return fromDataset((answer) => answer);
    case "altered":
      return fromDataset((answer) => {
        return answer.replace(/-?[\d,]+(?=\D*$)/, (number) => String(toNumber(number) + 1));
      });
    default:
      throw new Error(`no behaviour is called ${name}: echo, gold or altered`);
  }
}

function toNumber(text: string): number {
  return Number(text.replaceAll(",", ""));
}

function lastUser(request: ModelRequest): string {
  return textOf(request.messages.findLast((message) => message.role === "user"));
}

/** The reference solution, then its final number in a box, as the environment requires. */
function fromDataset(change: (answer: string) => string): (request: ModelRequest) => Reply {
  if (values.dataset === undefined) throw new Error("--dataset is needed for this behaviour");
  const lines = readFileSync(values.dataset, "utf8").split("\n").filter(Boolean);
  const rows = lines.map((line) => Row.parse(JSON.parse(line)));
  const answers = new Map(rows.map((row) => [row.question, change(row.answer)]));
  return (request) => {
    const answer = answers.get(lastUser(request)) ?? "I do not know this question.";
    return `${answer}\n\\boxed{${answer.split("####").at(-1)?.trim()}}`;
  };
}
