/** What a browser gets for a URL, over a real socket. */
import { expect, test } from "vitest";
import { PAGES } from "../../src/contract/pages.ts";
import { stage } from "./tabs.ts";

const OPENED = {
  ...{ accept: "text/html,application/xhtml+xml,*/*;q=0.8", "sec-fetch-mode": "navigate" },
  ...{ "sec-fetch-dest": "document", "sec-fetch-site": "none" },
};

async function opened(path: string) {
  const reply = await fetch(stage.url + path, { headers: OPENED, redirect: "manual" });
  const body = await reply.text();
  return { status: reply.status, type: reply.headers.get("content-type") ?? "", headers: reply.headers, body };
}

test("every page's path returns the same page, with a policy that blocks content from other sites", async () => {
  const [first = "", ...others] = await Promise.all(
    PAGES.map(async (path) => {
      const { status, type, headers, body } = await opened(path.replaceAll(/:\w+/g, "some-id"));
      const policy = headers.get("content-security-policy") ?? "";
      expect([path, status, type]).toEqual([path, 200, "text/html; charset=utf-8"]);
      expect(policy).toContain("default-src 'none'; script-src 'self'");
      expect(policy).not.toContain("unsafe");
      return body;
    }),
  );
  expect(new Set([first, ...others]).size).toBe(1);
});

test.each([
  ["/nope", 404, "text/html"],
  ["/runs/a/b/c/d", 404, "text/html"],
  ["/v1/nope", 404, "application/json"],
  ["/v1/runs", 401, "application/json"],
  ["/docs", 200, "text/html"],
  ["/openapi.json", 200, "application/json"],
  ["/assets/nope.js", 404, ""],
  ["/index.html", 404, "text/html"],
])("an opened %s answers %d as %s", async (path, status, type) => {
  const reply = await opened(path);
  expect([reply.status, reply.type.slice(0, type.length)]).toEqual([status, type]);
});

test("a file that the page names exists with the right type", async () => {
  const { body } = await opened("/");
  const [, script = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(body) ?? [];
  const { status, type, headers } = await opened(script);
  expect([status, type.split(";")[0], headers.get("x-content-type-options")]).toEqual([
    ...[200, "text/javascript", "nosniff"],
  ]);
});
