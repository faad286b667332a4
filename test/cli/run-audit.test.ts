/** `rollcall run audit` for a run whose records differ: a healthy platform has no such run. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUDIT } from "../kernel/http/examples.ts";
import { command } from "./run-rollcall.ts";

/** A run whose row in the database is not written yet. */
const BEHIND = AUDIT.run_id.replace(/.$/, "0");
const pathOf = (id: string) => `/v1/runs/${id}/audit`;

let server: Server;
let url: string;
beforeAll(async () => {
  const whole = { ...AUDIT, notes: ["2 messages ended in a dead-letter queue"] };
  const { sources } = AUDIT;
  const behind = { ...whole, sources: { ...sources, d1: { ...sources.d1, current: false } } };
  const audits: Record<string, object> = { [pathOf(AUDIT.run_id)]: whole, [pathOf(BEHIND)]: behind };
  server = createServer((request, response) => {
    const audit = audits[request.url ?? ""];
    const status = audit === undefined ? 404 : 200;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(audit ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

test("records that differ are exit 1, with the differences below the table", async () => {
  const env = { ROLLCALL_URL: url, ROLLCALL_API_KEY: "rk_x" };
  const [text, json] = await Promise.all([
    command(["run", "audit", AUDIT.run_id], { env }),
    command(["run", "audit", AUDIT.run_id, "--json"], { env }),
  ]);
  expect([text.code, json.code]).toEqual([1, 1]);
  expect(JSON.parse(json.stdout)).toMatchObject({ object: "audit", holds: false });
  const [violation] = AUDIT.violations;
  expect(text.stdout).toContain(`${AUDIT.run_id} is not consistent\n`);
  expect(text.stdout).toContain(`  ${violation?.rule}: ${violation?.detail}\n`);
  expect(text.stdout).toContain("  2 messages ended in a dead-letter queue\n");
  const [, stored] = /^database +(.+)$/m.exec(text.stdout) ?? [];
  expect(stored).toBe("planned 4, dispatched 4, in_flight 2, scored 2, failed.provider 1");
  const behind = await command(["run", "audit", BEHIND], { env });
  expect(behind.stdout).toContain(`${stored} (behind)\n`);
});
