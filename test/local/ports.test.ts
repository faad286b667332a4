import { createServer } from "node:net";
import { expect, test } from "vitest";
import { liveObjectQuota, openFileLimit, quotaText } from "../../src/local/open-files.ts";
import { freePort, isRefusedByFetch } from "../../src/local/ports.ts";

test("a busy port is replaced by the next free one", async () => {
  const server = createServer();
  const busy = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  expect(await freePort(busy)).toBeGreaterThan(busy);
  server.close();
});

test("a port that fetch refuses is skipped, and fetch refuses every port in the list", async () => {
  expect(await freePort(10_080)).toBeGreaterThan(10_080);
  expect(await freePort(6665)).toBeGreaterThan(6669);
  const named = Array.from({ length: 65_536 }, (_, port) => port).filter(isRefusedByFetch);
  const why = named.map((port) =>
    fetch(`http://127.0.0.1:${port}`).then(
      () => "reached",
      (error: Error) => String(error.cause),
    ),
  );
  expect(new Set(await Promise.all(why))).toEqual(new Set(["Error: bad port"]));
  expect(named.length).toBeGreaterThan(80);
});

test.each([
  [8192, 1561],
  [1_048_576, 209_638],
  [1024, 128],
  [512, 25],
  [64, 16],
])("%i open files allow %i live objects", (files, objects) => {
  expect(liveObjectQuota(files)).toBe(objects);
});

test("a quota is reported only if a run can reach it", () => {
  expect(quotaText(1024)).toBe(
    "At most 128 rollouts run at once here, half as many with databases: a process may have 1024 open files (ulimit -n).",
  );
  expect([8192, Number.POSITIVE_INFINITY].map(quotaText)).toEqual([null, null]);
});

test("without a limit on open files there is no quota", () => {
  expect(liveObjectQuota(Number.POSITIVE_INFINITY)).toBe(0);
});

test("this machine reports its limit on open files", () => {
  expect(openFileLimit()).toBeGreaterThan(0);
});
