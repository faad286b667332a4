/**
 * `npm run bench:long-rollout`: reads a rollout of 300,000 messages, calls and results in pieces, as its page does.
 * Prints the milliseconds of each read; the first read locates the turns, the others reuse that.
 */
import { bootPlatform } from "../src/local/platform.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { startScriptedModel } from "../test/fakes/scripted-model.ts";
import { eventsIn } from "../test/web/long-rollout.ts";
import { PLANTING, plantLongRollout } from "../test/web/planting.ts";

const TURNS = 1168;

const platform = await bootPlatform({
  directory: null,
  log: (line) => process.stderr.write(`${line}\n`),
  worker: PLANTING,
});
const model = await startScriptedModel({ reply: () => "It is 48." });
try {
  const client = new RollcallClient({ baseUrl: platform.url, apiKey: platform.key });
  const id = await plantLongRollout(platform.url, await playOne(client), TURNS);
  const reads: Readonly<Record<string, () => Promise<unknown>>> = {
    "head, first": () => client.rollouts.head(id),
    head: () => client.rollouts.head(id),
    "first ten turns": () => client.rollouts.turns.list(id, { limit: 10 }),
    "last ten turns": () => client.rollouts.turns.list(id, { before: TURNS, limit: 10 }),
    "one turn whole": () => client.rollouts.turns.get(id, TURNS - 1),
    "outline, a page": () => client.rollouts.outline(id, { limit: 5000 }),
  };
  const spent: Record<string, number> = {};
  for (const [name, read] of Object.entries(reads)) {
    const from = performance.now();
    await read();
    spent[name] = Math.round(performance.now() - from);
  }
  process.stdout.write(`${JSON.stringify({ events: eventsIn(TURNS), turns: TURNS, milliseconds: spent })}\n`);
} finally {
  await model.stop();
  await platform.stop();
}

async function playOne(client: RollcallClient): Promise<string> {
  const dataset = [{ question: "What is 12 * 3 + 12?", answer: "48" }];
  const run = await client.runs.create({
    ...{ environment: "calculator", model: "m", endpoint: { base_url: model.url }, dataset, num_examples: 1 },
    rollouts_per_example: 1,
  });
  for await (const { event } of client.runs.events(run.id)) if (event === "run.completed") break;
  return run.id;
}
