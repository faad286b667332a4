import { createServer } from "node:net";
import { expect, test } from "vitest";
import { freePort, liveObjectCeiling, openFileLimit } from "../../src/local/ports.ts";

test("a busy port moves to the next free one", async () => {
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

test.each([
  [8192, 2560],
  [1_048_576, 349_354],
  [1024, 170],
  [512, 16],
  [64, 16],
])("%i open files allow %i live objects", (files, objects) => {
  expect(liveObjectCeiling(files)).toBe(objects);
});

test("without a limit of open files there is no ceiling", () => {
  expect(liveObjectCeiling(Number.POSITIVE_INFINITY)).toBe(0);
});

test("this machine tells its limit of open files", () => {
  expect(openFileLimit()).toBeGreaterThan(0);
});
