/** Against the official SDK's server, without a network: all requests and replies are real. */
import { dataset, defineEnvironment, MCPEnv, tool } from "rollcall";
import { type Reply, runRollout, scripted } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { FetchOptions } from "../../../src/core/environments/contract.ts";
import { McpShop } from "../../fakes/mcp-shop.ts";

const Task = z.object({ question: z.string() });
const task = { question: "Buy tea." };

const shopping = defineEnvironment({
  args: z.strictObject({ towns: z.array(z.string()).default(["shop"]) }),
  needs: ["fetch"],
  build: ({ towns }) =>
    new MCPEnv({
      dataset: dataset(Task, "uploaded"),
      servers: Object.fromEntries(
        towns.map((town) => [
          town,
          { url: `https://${town}.example/mcp`, headers: { authorization: `Bearer ${town}` } },
        ]),
      ),
      setupState: () => ({ bought: "" }),
      postRollout: async (state) => {
        state.bought = String(await state.live.mcp.call(towns[0] ?? "", "basket", {}));
      },
      rubric: { rewards: { tea: ({ state }) => state.bought.startsWith("tea") } },
    }),
});

function street(shops: Readonly<Record<string, McpShop>>) {
  return async (url: string, { method, headers, body }: FetchOptions = {}) => {
    const shop = shops[new URL(url).hostname.split(".")[0] ?? ""];
    if (shop === undefined) throw new TypeError("connection refused");
    const sent = { ...(method && { method }), ...(headers && { headers }), ...(body && { body }) };
    return await shop.fetch(new Request(url, sent));
  };
}

const call = (name: string, args: object = {}) => ({ tool_calls: [{ name, arguments: args }] });

async function play(shops: Readonly<Record<string, McpShop>>, replies: readonly Reply[], more = {}) {
  const offered: string[][] = [];
  const next = scripted(replies);
  const environment = await shopping({ towns: Object.keys(shops) });
  const report = await runRollout(environment, {
    task,
    model: (request) => {
      offered.push(request.tools.map((definition) => definition.function.name));
      return next(request);
    },
    capabilities: { fetch: street(shops) },
    ...more,
  });
  const said = report.completion.filter(({ role }) => role === "tool").map((m) => m.content);
  return { report, said, offered };
}

const TEA = [call("add", { item: "tea", count: 2 }), call("basket"), "Done."];

test("the model calls a server's tools in one session, which ends with the rollout", async () => {
  const shop = new McpShop();
  const { report, said, offered } = await play({ shop }, TEA);
  expect(report).toMatchObject({ reward: 1, error: null, cleanup_errors: [] });
  expect(said).toEqual(["2 in the basket", "tea, tea\nThat is all."]);
  expect(offered[0]).toEqual(["add", "basket", "pay", "photo", "empty"]);
  expect(shop.asked.filter((method) => method === "initialize").length).toBe(1);
  expect(shop.asked.at(-1)).toBe("DELETE");
  expect(shop.sessions).toBe(0);
  expect(new Set(shop.credentials)).toEqual(new Set(["Bearer shop"]));
});

test("a restart continues the session and offers the same tools, whatever the server lists by then", async () => {
  const shop = new McpShop();
  const model = scripted(TEA);
  const offered = new Set<string>();
  const report = await runRollout(await shopping(), {
    task,
    model: (request) => {
      shop.stock("novelty");
      offered.add(request.tools.map((definition) => definition.function.name).join());
      return model(request);
    },
    capabilities: { fetch: street({ shop }) },
    restartAfterEachTurn: true,
  });
  expect(report).toMatchObject({ reward: 1, error: null });
  expect([...offered]).toEqual(["add,basket,pay,photo,empty"]);
  expect(shop.asked.filter((method) => method === "initialize").length).toBe(1);
});

test("a server without sessions gets a new handshake, and no end of session", async () => {
  const shop = new McpShop({ stateful: false });
  const { report, said } = await play({ shop }, [call("add", { item: "tea" }), "Done."]);
  expect([report.error, said]).toEqual([null, ["1 in the basket"]]);
  expect(shop.asked).not.toContain("DELETE");
});

test.each([{ stateful: true }, { stateful: false }])(
  "an empty reply with a JSON type is not a message: %j",
  async (sessions) => {
    const shop = new McpShop({ ...sessions, labelsNothing: true });
    const { report, said } = await play({ shop }, [call("add", { item: "tea" }), "Done."]);
    expect([report.error, report.cleanup_errors, said]).toEqual([null, [], ["1 in the basket"]]);
    expect(shop.sessions).toBe(0);
  },
);

test("names that servers share are made unique; a call goes to the right server", async () => {
  const [north, south] = [new McpShop(), new McpShop()];
  south.stock("herbs");
  const { said, offered } = await play({ north, south }, [
    call("south_add", { item: "tea" }),
    call("north_basket"),
    call("herbs"),
    "Done.",
  ]);
  expect(offered[0]).toEqual([
    ...["add", "basket", "pay", "photo", "empty"].map((name) => `north_${name}`),
    ...["add", "basket", "pay", "photo", "empty"].map((name) => `south_${name}`),
    "herbs",
  ]);
  expect(said).toEqual(["1 in the basket", "\nThat is all.", "herbs"]);
});

test("the model reads errors of a tool, and arguments that its schema refuses", async () => {
  const shop = new McpShop();
  const { report, said } = await play({ shop }, [
    call("pay"),
    call("add", { item: 5, count: 0 }),
    call("add", { item: "tea", colour: "green" }),
    call("steal"),
    "Done.",
  ]);
  expect(report.error).toBe(null);
  expect(said).toEqual([
    "the card is refused",
    'bad arguments for add: item: Instance type "number" is invalid. Expected "string".; count: 0 is less than 1.',
    'bad arguments for add: Property "colour" does not match additional properties schema.',
    "there is no tool named steal",
  ]);
  // Refused here, not by the server.
  expect(shop.asked.filter((method) => method === "tools/call").length).toBe(2);
});

test("a server gets the digits of a number as the model wrote them, if its schema accepts the number", async () => {
  const shop = new McpShop();
  const bodies: string[] = [];
  const heard = async (url: string, init: FetchOptions = {}) => {
    if (init.body?.includes("tools/call")) bodies.push(init.body);
    return await street({ shop })(url, init);
  };
  const numbers = ["9007199254740993", "12345678901234567890123.0", "9.007199254740993e15", "1e400", "5"];
  const texts = numbers.map((number) => `{"ids":[${number}]}`);
  const more = [`{"item":9007199254740993}`, `{"item":"tea","count":-9007199254740993}`];
  const tool_calls = [
    ...texts.map((text) => ({ name: "odd", arguments: text })),
    ...more.map((text) => ({ name: "add", arguments: text })),
  ];
  shop.stock("odd");
  const { said } = await play({ shop }, [{ tool_calls }, "Done."], { capabilities: { fetch: heard } });
  for (const number of numbers)
    expect(
      bodies.some((body) => body.includes(`{"ids":[${number}]}`)),
      number,
    ).toBe(true);
  expect(said.slice(-2)).toEqual([
    'bad arguments for add: item: Instance type "number" is invalid. Expected "string".',
    "bad arguments for add: count: -9007199254740993 is less than 1.",
  ]);
});

test("images become parts, and an empty result becomes a text", async () => {
  const { said } = await play({ shop: new McpShop() }, [call("photo"), call("empty"), "Done."]);
  expect(said).toEqual([
    [
      { type: "text", text: "Here:" },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
      { type: "text", text: "[audio, audio/wav]" },
      { type: "text", text: "a teapot" },
    ],
    "no result",
  ]);
});

test("a server that is down at set-up fails the rollout before any call, with the cause", async () => {
  const environment = await shopping({ towns: ["shop", "shut"] });
  const report = await runRollout(environment, {
    task,
    model: scripted([]),
    capabilities: { fetch: street({ shop: new McpShop() }) },
  });
  expect(report).toMatchObject({
    reward: null,
    error: {
      error: "InfraError",
      message: "the MCP server shut: connection refused",
      error_chain_str: "InfraError -> TypeError",
      retryable: true,
    },
  });
});

test("if a server has lost the session, the rollout ends, and may be retried", async () => {
  const shop = new McpShop();
  const replies = scripted([call("add", { item: "tea" }), call("basket")]);
  const report = await runRollout(await shopping(), {
    task,
    model: (request) => {
      if (request.turn === 1) shop.restart();
      return replies(request);
    },
    capabilities: { fetch: street({ shop }) },
  });
  expect(report.error).toMatchObject({
    error: "InfraError",
    message: "the MCP server shop: HTTP 404: no such session",
    retryable: true,
  });
});

test("the environment's own tools are offered with the servers', and keep their names", async () => {
  const environment = new MCPEnv({
    dataset: dataset(Task, "uploaded"),
    servers: { shop: { url: "https://shop.example/mcp", headers: () => ({}) } },
    tools: [
      tool({
        name: "basket",
        description: "Mine.",
        parameters: z.object({}),
        run: () => "my own",
      }),
    ],
    rubric: {},
  });
  environment.needs = ["fetch"];
  const report = await runRollout(environment, {
    task,
    model: scripted([call("basket"), call("shop_basket"), "Done."]),
    capabilities: { fetch: street({ shop: new McpShop() }) },
  });
  const said = report.completion.filter(({ role }) => role === "tool").map((m) => m.content);
  expect([report.error, said]).toEqual([null, ["my own", "\nThat is all."]]);
});

test("own handles are refused by name, because the connections are the handles", () => {
  const options = { dataset: dataset(Task, "uploaded"), servers: {}, rubric: {} };
  expect(() => new MCPEnv({ ...options, ...{ openLive: () => ({}) } } as typeof options)).toThrow(
    /has no option openLive/,
  );
});

test("a message with too many values is refused before it is examined", async () => {
  const tools = Array.from({ length: LIMITS.valuesPerMessage }, () => ({}));
  const shop = new McpShop();
  const crowded = async (url: string, init: FetchOptions = {}) => {
    const list = init.body?.includes('"tools/list"') ?? false;
    if (!list) return await street({ shop })(url, init);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { tools } });
    return new Response(body, { headers: { "content-type": "application/json" } });
  };
  const { report } = await play({ shop }, TEA, { capabilities: { fetch: crowded } });
  expect(report.error?.message).toContain(`a message has more than ${LIMITS.valuesPerMessage} values`);
});

test("a server that sends a ping before the answer to a call gets its pong", async () => {
  const shop = new McpShop();
  const pong = Promise.withResolvers<void>();
  const asking = async (url: string, init: FetchOptions = {}) => {
    const message = JSON.parse(init.body ?? "{}");
    if (message.id === "are you there?" && "result" in message) pong.resolve();
    const reply = await street({ shop })(url, init);
    if (message.method !== "tools/call") return reply;
    const ping = { jsonrpc: "2.0", id: "are you there?", method: "ping" };
    init.until?.(`data: ${JSON.stringify(ping)}\n\n`, reply);
    await pong.promise;
    const text = await reply.text();
    init.until?.(text, reply);
    return { status: reply.status, headers: reply.headers, text: async () => text };
  };
  const { report, said } = await play({ shop }, TEA, { capabilities: { fetch: asking } });
  expect([report.error, said]).toEqual([null, ["2 in the basket", "tea, tea\nThat is all."]]);
});
