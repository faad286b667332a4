/** Tools as servers list them: which are offered, by what names, and the reasons for those left out. */
import { dataset, MCPEnv, tool } from "rollcall";
import { runRollout } from "rollcall/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { ToolDefinition } from "../../../src/contract/messages.ts";
import type { LeftOutTool } from "../../../src/core/environments/mcp-tools.ts";
import { scriptedMcp } from "../../fakes/mcp-scripted.ts";

type Pages = readonly (readonly unknown[])[];
type Definition = ToolDefinition["function"];

/** A rollout that ends at once, with one own tool `mine`. `lists`: the lists of each server, page by page. */
async function set(lists: Readonly<Record<string, Pages>>) {
  const environment = new MCPEnv({
    dataset: dataset(z.object({ question: z.string() }), "uploaded"),
    servers: Object.fromEntries(Object.keys(lists).map((name) => [name, { url: `https://example.com/${name}` }])),
    tools: [tool({ name: "mine", description: "", parameters: z.object({}), run: () => "" })],
    rubric: {},
  });
  environment.needs = ["fetch"];
  let offered: Definition[] = [];
  const { error, trajectory } = await runRollout(environment, {
    task: { question: "?" },
    model: ({ tools }) => {
      offered = tools.map((one) => one.function).filter(({ name }) => name !== "mine");
      return "Done.";
    },
    capabilities: {
      fetch: async (url, options) => {
        const pages = lists[url.split("/").at(-1) ?? ""] ?? [];
        const list = ({ cursor = "0" }) => ({
          tools: pages[Number(cursor)],
          ...(Number(cursor) + 1 < pages.length && { nextCursor: String(Number(cursor) + 1) }),
        });
        return await scriptedMcp({ "tools/list": list })(url, options);
      },
    },
  });
  const state = trajectory.final_state["mcp"] as { left_out?: readonly LeftOutTool[] } | undefined;
  return { error, offered, names: offered.map(({ name }) => name), left_out: state?.left_out };
}

const inputSchema = { type: "object", properties: {} };
const named = (...names: readonly string[]) => names.map((name) => ({ name, inputSchema }));

test.each<[string, unknown, string, string]>([
  ["no name", { inputSchema }, "#1", "it has no name"],
  ["a blank name", { name: " ", inputSchema }, "#1", "it has no name"],
  ["a name that is no text", { name: 7, inputSchema }, "#1", "it has no name"],
  ["nothing but a text", "price", "#1", "it has no name"],
  ["null", null, "#1", "it has no name"],
  ["no schema", { name: "odd" }, "odd", "it has no inputSchema"],
  [
    "a schema that is null",
    { name: "odd", inputSchema: null },
    "odd",
    "its inputSchema cannot be used: it is null, not an",
  ],
  [
    "a schema that is a text",
    { name: "odd", inputSchema: "{}" },
    "odd",
    "its inputSchema cannot be used: it is a string",
  ],
  [
    "a schema of a list",
    { name: "odd", inputSchema: { type: "array" } },
    "odd",
    "its inputSchema cannot be used: its type is",
  ],
  [
    "a schema of no type",
    { name: "odd", inputSchema: { properties: { a: { type: "int" } } } },
    "odd",
    "its inputSchema cannot",
  ],
  [
    "a schema without end",
    { name: "odd", inputSchema: { $ref: "#" } },
    "odd",
    "its inputSchema cannot be used: it refers to its",
  ],
  [
    "a schema of 64 KiB",
    { name: "odd", inputSchema: { title: "x".repeat(65_536) } },
    "odd",
    "its inputSchema cannot be used: it",
  ],
  [
    "a description of 64 KiB",
    { name: "odd", inputSchema, description: "x".repeat(65_536) },
    "odd",
    "its name and description",
  ],
])("a tool with %s is left out and named, and the others are offered", async (_what, given, tool, why) => {
  const { error, names, left_out } = await set({ shop: [[given, ...named("price")]] });
  expect([error, names]).toEqual([null, ["price"]]);
  expect(left_out).toEqual([{ server: "shop", tool, why: expect.stringContaining(why) }]);
});

test("of two tools of one name the first is offered, also from another page", async () => {
  const { names, left_out } = await set({ shop: [named("price", "price"), named("price", "pay")] });
  expect(names).toEqual(["price", "pay"]);
  const why = "an earlier tool of this server has the same name";
  expect(left_out).toEqual([
    { server: "shop", tool: "price", why },
    { server: "shop", tool: "price", why },
  ]);
});

test("members besides name and schema never make a tool unusable", async () => {
  const odd = {
    title: 5,
    description: ["A price."],
    annotations: "none",
    outputSchema: "no",
    icons: 1,
    execution: null,
  };
  const hinted = { name: "b", inputSchema, annotations: { title: "B", readOnlyHint: "yes", idempotentHint: null } };
  const { offered, left_out } = await set({ shop: [[{ name: "a", inputSchema: {}, ...odd }, hinted]] });
  expect(offered).toEqual([
    { name: "a", description: "", parameters: { type: "object" } },
    { name: "b", description: "B", parameters: inputSchema },
  ]);
  expect(left_out).toBe(undefined);
});

test("a rollout fails with the reasons if its servers list no tool that can be offered", async () => {
  const { error } = await set({ shop: [[{ name: "a" }]], bank: [[{ name: "b", inputSchema: [] }]] });
  expect(error).toMatchObject({ error: "InfraError", retryable: true });
  expect(error?.message).toBe(
    "no tool of the MCP servers can be used: shop: a: it has no inputSchema; " +
      "bank: b: its inputSchema cannot be used: it is a list, not an object",
  );
  expect((await set({ shop: [[]] })).error).toBe(null);
  expect((await set({ shop: [[{ name: "a" }]], bank: [named("b")] })).names).toEqual(["b"]);
});

test("if many tools are left out, a hundred are named and the rest are counted", async () => {
  const { error, left_out } = await set({ shop: [[...Array.from({ length: 150 }, () => 0), ...named("price")]] });
  expect([error, left_out?.length]).toEqual([null, 101]);
  expect(left_out?.at(-1)).toEqual({ server: "shop", tool: "…", why: "50 more are left out" });
});

test("an endless list, or one that repeats a page, is given up", async () => {
  const endless = await set({ shop: Array.from({ length: 100 }, (_, at) => named(`t${at}`)) });
  expect(endless.error?.message).toBe("the MCP server shop: its list of tools has more than 64 pages");
});

const LONG = "look_up_the_price_of_an_item_in_the_catalogue_of_the_shop_by_its_";

test.each<[string, Readonly<Record<string, readonly string[]>>]>([
  ["long names with one beginning", { shop: [`${LONG}number`, `${LONG}name`, `${LONG}colour`] }],
  ["long names that only characters which do not fit tell apart", { shop: [`${LONG}.a`, `${LONG}/a`] }],
  ["the same long name at two servers", { north: [`${LONG}number`], south: [`${LONG}number`] }],
  ["long names of servers", { [`${LONG}north`]: ["buy", "pay"], [`${LONG}south`]: ["buy", "pay"] }],
  ["names that differ in a dot", { shop: ["item.price", "item_price", "item/price"] }],
  ["names in another script", { shop: ["价格", "付款", "цена"] }],
  ["a name that another gets by its server", { a: ["b_c", "x"], a_b: ["c", "x"], b: ["b_c", "c"] }],
  ["an own tool's name", { shop: ["mine"], other: ["mine", "shop_mine"] }],
  ["a server's prefix that makes a name too long", { [LONG]: ["price"], shop: ["price"] }],
])("names are unique and accepted by endpoints: %s", async (_what, lists) => {
  const pages = (order: (names: readonly string[]) => readonly string[]) =>
    Object.fromEntries(Object.entries(lists).map(([server, names]) => [server, [named(...order(names))]]));
  const { error, names, left_out } = await set(pages((one) => one));
  expect([error, left_out]).toEqual([null, undefined]);
  expect(names.length).toBe(Object.values(lists).flat().length);
  expect(new Set([...names, "mine"]).size).toBe(names.length + 1);
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  // The order of a server's list makes no difference.
  const turned = await set(pages((one) => one.toReversed()));
  expect(turned.names.toSorted()).toEqual(names.toSorted());
});

test("a valid name that is not shared is unchanged, and a long one keeps its beginning", async () => {
  const { names } = await set({ shop: [named("price", "x".repeat(64), `${LONG}number`)] });
  expect(names.slice(0, 2)).toEqual(["price", "x".repeat(64)]);
  expect(names[2]).toMatch(new RegExp(`^${LONG.slice(0, 55)}_[0-9a-f]{8}$`));
});

test("the limits in the tests above are those of the platform", () => {
  expect(LIMITS.mcpToolBytes).toBe(65_536);
});
