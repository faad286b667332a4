import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ENDPOINT_PRESETS } from "../../src/cli/endpoint-presets.ts";

test("docs/endpoints.md names each known server, with its base URL", () => {
  const page = readFileSync("docs/endpoints.md", "utf8");
  const rows = [...page.matchAll(/^\| [^|]*\(`([\w.]+)`\) \| `([^`]+)`/gm)];
  const listed = rows.map(([, name, url]) => [name, url?.replace("HOST", "127.0.0.1")]);
  const known = Object.entries(ENDPOINT_PRESETS).map(([name, { base_url }]) => [name, base_url]);
  expect(listed.sort()).toEqual(known.sort());
});
