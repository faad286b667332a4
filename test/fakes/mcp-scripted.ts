/**
 * An MCP server that gives exactly the answers a test needs, by method, including those that the official SDK's server
 * would refuse to send. It has no sessions, and answers in JSON.
 */
import type { FetchOptions, FetchReply } from "../../src/core/environments/contract.ts";

/** The answer of each method, as a function of its parameters. */
export type McpAnswers = Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => unknown>>;

export function scriptedMcp(answers: McpAnswers) {
  return async (_url: string, { method, body }: FetchOptions = {}): Promise<FetchReply> => {
    if (method !== "POST") return new Response("", { status: 405 });
    const message = JSON.parse(body ?? "");
    if (message.id === undefined) return new Response(null, { status: 202 });
    const result = (answers[message.method] ?? GREETING[message.method])?.(message.params);
    const said = result === undefined ? { error: { code: -32_601, message: "there is no such method" } } : { result };
    return Response.json({ jsonrpc: "2.0", id: message.id, ...said });
  };
}

const GREETING: McpAnswers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "scripted", version: "1" },
  }),
};
