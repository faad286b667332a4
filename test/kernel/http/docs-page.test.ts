import { html } from "hono/html";
import { expect, test } from "vitest";
import { openApiOf } from "../../../src/kernel/http/openapi/openapi.ts";
import { referencePage } from "../../../src/kernel/http/openapi/reference-page.ts";
import { placeOf } from "../../../src/kernel/http/operation.ts";
import { OPERATIONS } from "../../../src/slices.ts";
import { openTestApi } from "./test-api.ts";

async function pageServed(): Promise<{ text: string; headers: Headers }> {
  const { app } = await openTestApi();
  const reply = await app.request("/docs");
  return { text: await reply.text(), headers: reply.headers };
}

const matches = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern), ([, found = ""]) => found);

test("the page has every operation with its path, its example, its errors, and an entry in the contents", async () => {
  const { text } = await pageServed();
  for (const operation of OPERATIONS) {
    const { id, summary } = operation;
    const { path } = placeOf(operation);
    const [article = ""] = text.split(`<article id="${id}">`).slice(1);
    expect(text, id).toContain(`<a href="#${id}">`);
    expect(article, id).toContain(`<code>${path}</code>`);
    expect(article, id).toContain(String(html`${summary}`));
    expect(article, id).toContain("curl &quot;$ROLLCALL_URL/");
    expect(article, id).toContain("<code>internal</code>");
  }
});

test("an example has the key, or the link's token, if the operation needs one", async () => {
  const { text } = await pageServed();
  const shownBy = (id: string) => {
    const [article = ""] = text.split(`<article id="${id}">`).slice(1);
    return /authorization: Bearer ([^&]+)&quot;/.exec(article.split("</article>")[0] ?? "")?.[1];
  };
  const asked = ["listRuns", "whoAmI", "getBalance", "getSharedReport", "getHealth"].map(shownBy);
  const key = "$ROLLCALL_API_KEY";
  expect(asked).toEqual([key, key, key, expect.stringMatching(/^rkr_/), undefined]);
});

test("every link on the page has a target on it, or leads to the document", async () => {
  const { text } = await pageServed();
  const ids = matches(text, /\sid="([^"]+)"/g);
  expect(new Set(ids).size).toBe(ids.length);
  const targets = matches(text, /href="([^"]+)"/g);
  const astray = targets.filter((to) => to !== "/openapi.json" && !ids.includes(to.slice(1)));
  expect(astray).toEqual([]);
  expect(targets).toContain("/openapi.json");
});

test("every named schema is a table with all its fields", async () => {
  const { text } = await pageServed();
  for (const [name, schema] of Object.entries(openApiOf(OPERATIONS).components.schemas)) {
    const [section = ""] = text.split(`<h3 id="schema-${name}">`).slice(1);
    const [table = ""] = section.split("<h3 ");
    for (const field of Object.keys(schema.properties ?? {})) {
      expect(table, name).toContain(`<code>${field}</code>`);
    }
  }
});

test("a nullable field says so, and a parameter's notes are separate sentences", async () => {
  const { text } = await pageServed();
  const [, table = ""] = text.split('<h3 id="schema-RunList">');
  expect(table).toMatch(/<code>first_id<\/code><\/td>\n<td>string \| null<\/td>/);
  expect(text).not.toMatch(/<\/code><\/td>\n<td><\/td><td>required/);
  expect(text).toContain("by creation time; default <code>&quot;desc&quot;</code>");
});

test("the page loads nothing and runs nothing, and its policy enforces that", async () => {
  const { text, headers } = await pageServed();
  expect(text).not.toMatch(/<(script|img|link|iframe|object)\b|\son\w+=|@import|url\(/i);
  expect(matches(text, /(?:src|href)="(\w+:[^"]*)"/g)).toEqual([]);
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; /);
  const [style = ""] = matches(text, /<style>([^<]*)<\/style>/g);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style));
  expect(policy).toContain(btoa(String.fromCharCode(...new Uint8Array(digest))));
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
});

test("text in the document cannot break out of its place on the page", () => {
  const evil = `</code><script>alert("1")</script>'`;
  const [operation] = OPERATIONS;
  if (operation === undefined) throw new Error("there are no operations");
  const document = openApiOf([{ ...operation, summary: evil, description: evil }]);
  const page = referencePage({ ...document, tags: [{ name: "platform", description: evil }] });
  expect(page).not.toContain("<script>");
  expect(page).not.toContain(`alert("1")`);
});
