/**
 * `npm run bench:policy`: requests per second of the policy server over HTTP, with a run's requests. It plays
 * conversations of `calculator` (a question and, if the policy called a tool, the result), with a fixed number in
 * flight. Server and client have a thread each, and their CPU is counted separately. Progress goes to stderr, the table
 * or with --json one object to stdout.
 */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { POLICY_MODEL } from "@rollcall/policy/known-environments";
import { startPolicyServer } from "@rollcall/policy/policy-server";
import * as z from "zod";
import type { Message } from "../src/contract/messages.ts";
import { describeMachine, describeVersions } from "./machine.ts";

const HELP = `Usage: npm run bench:policy -- [flags]

      --conversations N   default 4000
      --in-flight N       conversations at once; default 128
      --json              print {machine, versions, row}
`;

const Completion = z.object({
  choices: z.tuple([
    z.object({
      message: z.object({
        content: z.string().nullable(),
        tool_calls: z
          .array(
            z.object({
              id: z.string(),
              type: z.literal("function"),
              function: z.object({ name: z.string(), arguments: z.string() }),
            }),
          )
          .optional(),
      }),
    }),
  ]),
  usage: z.object({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    prompt_tokens_details: z.object({ cached_tokens: z.int() }),
  }),
});

interface Totals {
  requests: number;
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  /** Of each request, in milliseconds. */
  readonly latencies: number[];
}

interface Row {
  readonly conversations: number;
  readonly in_flight: number;
  readonly requests: number;
  readonly requests_per_s: number;
  readonly sampled_tokens_per_s: number;
  readonly prompt_tokens_from_cache: number;
  readonly latency_ms: { readonly median: number; readonly p95: number };
  readonly server_cpu_s: number;
  readonly client_cpu_s: number;
}

async function measure(url: string, conversations: number, inFlight: number): Promise<Row> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  const totals = newTotals();
  const clientCpu = process.threadCpuUsage();
  const cpu = process.cpuUsage();
  const started = performance.now();
  let next = 0;
  const player = async () => {
    while (next < conversations) {
      next += 1;
      await converse(url, agent, next, totals);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, player));
  const seconds = (performance.now() - started) / 1000;
  const client = secondsOf(process.threadCpuUsage(clientCpu));
  const server = secondsOf(process.cpuUsage(cpu)) - client;
  agent.destroy();
  return rowOf(totals, { conversations, inFlight, seconds, client, server });
}

function newTotals(): Totals {
  return { requests: 0, promptTokens: 0, cachedTokens: 0, completionTokens: 0, latencies: [] };
}

/** A question; then the tool's result, if the policy called one. */
async function converse(url: string, agent: Agent, serial: number, totals: Totals): Promise<void> {
  const [a, b] = [1 + (serial % 9), 1 + (Math.floor(serial / 9) % 9)];
  const question: Message = { role: "user", content: `What is ${a} + ${b}?` };
  const said = await ask(url, agent, [question], totals);
  const [call] = said.tool_calls ?? [];
  if (call === undefined) return;
  const result: Message = { role: "tool", content: String(a + b), tool_call_id: call.id };
  await ask(url, agent, [question, { role: "assistant", ...said }, result], totals);
}

async function ask(url: string, agent: Agent, messages: readonly Message[], totals: Totals) {
  const started = performance.now();
  const body = JSON.stringify({
    model: POLICY_MODEL,
    messages,
    tools: [{ type: "function", function: { name: "add", parameters: {} } }],
    max_tokens: 16,
    min_tokens: 1,
    logprobs: true,
    return_token_ids: true,
  });
  const reply = Completion.parse(JSON.parse(await post(`${url}/chat/completions`, agent, body)));
  const { usage } = reply;
  totals.requests += 1;
  totals.promptTokens += usage.prompt_tokens;
  totals.completionTokens += usage.completion_tokens;
  totals.cachedTokens += usage.prompt_tokens_details.cached_tokens;
  totals.latencies.push(performance.now() - started);
  return reply.choices[0].message;
}

function post(url: string, agent: Agent, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      text(response).then(resolve, reject);
    });
    sent.once("error", reject).end(body);
  });
}

function secondsOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1e6;
}

interface Taken {
  readonly conversations: number;
  readonly inFlight: number;
  readonly seconds: number;
  readonly client: number;
  readonly server: number;
}

function rowOf(totals: Totals, taken: Taken): Row {
  const latencies = totals.latencies.toSorted((one, other) => one - other);
  const quantile = (share: number) => latencies[Math.floor(share * (latencies.length - 1))] ?? 0;
  return {
    conversations: taken.conversations,
    in_flight: taken.inFlight,
    requests: totals.requests,
    requests_per_s: round(totals.requests / taken.seconds, 0),
    sampled_tokens_per_s: round(totals.completionTokens / taken.seconds, 0),
    prompt_tokens_from_cache: round(totals.cachedTokens / totals.promptTokens, 2),
    latency_ms: { median: round(quantile(0.5), 0), p95: round(quantile(0.95), 0) },
    server_cpu_s: round(taken.server, 1),
    client_cpu_s: round(taken.client, 1),
  };
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function table(row: Row): string {
  const { cpu, cores, memory_gb } = describeMachine();
  const columns = {
    requests: row.requests.toLocaleString("en"),
    "in flight": String(row.in_flight),
    "requests/s": `**${row.requests_per_s.toLocaleString("en")}**`,
    "sampled tokens/s": row.sampled_tokens_per_s.toLocaleString("en"),
    "prompt from cache": `${round(row.prompt_tokens_from_cache * 100, 0)} %`,
    "latency median, p95": `${row.latency_ms.median}, ${row.latency_ms.p95} ms`,
    "CPU s: server + client": `${row.server_cpu_s} + ${row.client_cpu_s}`,
  };
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const titles = Object.keys(columns);
  const about = `${new Date().toISOString().slice(0, 10)}, ${cores} × ${cpu}, ${memory_gb} GB.`;
  return [about, "", line(titles), line(titles.map(() => "---")), line(Object.values(columns))].join("\n");
}

function count(value: string, flag: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${flag}: ${value} is not a whole number of at least 1`);
}

/** Enough to compile the hot paths on both sides. */
const WARM_UP = 500;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    conversations: { type: "string", default: "4000" },
    "in-flight": { type: "string", default: "128" },
    json: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  const conversations = count(values.conversations, "conversations");
  const inFlight = count(values["in-flight"], "in-flight");
  const server = await startPolicyServer({ seed: 1 });
  process.stderr.write(`${conversations} conversations, ${inFlight} in flight, at ${server.url}\n`);
  await measure(server.url, WARM_UP, inFlight);
  const row = await measure(server.url, conversations, inFlight);
  await server.stop();
  const machine = describeMachine();
  const report = values.json ? JSON.stringify({ machine, versions: describeVersions(), row }) : table(row);
  process.stdout.write(`${report}\n`);
}
