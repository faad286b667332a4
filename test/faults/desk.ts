/**
 * The harness's own server, which outlives the processes that a plan kills. Every POST to /<tool>/<idempotency key> is
 * one run of a tool; GET /knobs returns the current faults for the inside of the Worker.
 */
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { KnobSettings } from "./knobs.ts";

export interface ToolRun {
  readonly tool: string;
  readonly key: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

export interface Desk {
  readonly url: string;
  readonly runs: readonly ToolRun[];
  knobs(): KnobSettings;
  turn(changes: Partial<KnobSettings>): void;
  stop(): Promise<void>;
}

/** How long a tool runs: long enough that kills happen during it. */
const TAKES_MS = 25;

export async function openDesk(from: KnobSettings): Promise<Desk> {
  const runs: ToolRun[] = [];
  let knobs = from;
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.end(JSON.stringify(knobs));
      return;
    }
    const [, tool = "", key = ""] = (request.url ?? "").split("/");
    runs.push({ tool, key: decodeURIComponent(key), at: Date.now() });
    void pause(TAKES_MS).then(() => response.writeHead(204).end());
  });
  // A pooled connection must survive the pauses of a run; closing it in between would look like a fault.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the desk has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    runs,
    knobs: () => knobs,
    turn: (changes) => {
      knobs = { ...knobs, ...changes };
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
