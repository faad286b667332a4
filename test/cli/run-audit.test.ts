/** `rollcall run audit` of a run whose records differ: a platform that is whole has none to show. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUDIT } from "../api/examples.ts";
import { rollcall } from "./run-rollcall.ts";

let server: Server;
let url: string;
beforeAll(async () => {
  const body = JSON.stringify({ ...AUDIT, notes: ["2 messages ended in a dead-letter queue"] });
  server = createServer((request, response) => {
    const known = request.url === `/v1/runs/${AUDIT.run_id}/audit`;
    response.writeHead(known ? 200 : 404, { "content-type": "application/json" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

test("records that differ are exit 1, with what differs below the four of them", async () => {
  const env = { ROLLCALL_URL: url, ROLLCALL_API_KEY: "rk_x" };
  const [text, json] = await Promise.all([
    rollcall(["run", "audit", AUDIT.run_id], env),
    rollcall(["run", "audit", AUDIT.run_id, "--json"], env),
  ]);
  expect([text.code, json.code]).toEqual([1, 1]);
  expect(JSON.parse(json.stdout)).toMatchObject({ object: "audit", holds: false });
  const [violation] = AUDIT.violations;
  expect(text.stdout).toContain(`${AUDIT.run_id} does not hold\n`);
  expect(text.stdout).toContain(`  ${violation?.rule}: ${violation?.detail}\n`);
  expect(text.stdout).toContain("  2 messages ended in a dead-letter queue\n");
  expect(text.stdout).toMatch(/database +scored 1, failed.timeout 1 of 2 written\n/);
}, 60_000);
