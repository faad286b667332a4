import { expect, test } from "vitest";
import { FetchTransport } from "../../../src/core/environments/mcp-connection.ts";

test("a reply that is no JSON is told by its length, without a piece of it: a server may repeat a key", async () => {
  const key = `mcp-key-${"1234567890".repeat(5)}`;
  const transport = new FetchTransport({
    fetch: async () => ({
      status: 200,
      headers: { get: () => "application/json" },
      text: async () => key,
    }),
    url: "https://shop.example/mcp",
    headers: { authorization: `Bearer ${key}` },
    session: null,
  });
  const sent = transport.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  await expect(sent).rejects.toThrow(/^the reply is no JSON: 58 characters$/);
});
