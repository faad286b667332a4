/** How a local platform's calls leave: past Miniflare's outbound Worker, or through it like a Worker's `fetch`. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { NETWORK_BINDING, networkService } from "../../src/local/miniflare.ts";
import { bootPlatform, type Platform } from "../../src/local/platform.ts";
import { testPort } from "./test-port.ts";

const root = join(import.meta.dirname, "fixture-worker");
let [platform, server]: [Platform | undefined, Server | undefined] = [undefined, undefined];
afterEach(async () => {
  vi.unstubAllEnvs();
  await platform?.stop();
  server?.closeAllConnections();
  server?.close();
});

/** The request headers that a server on this machine gets from a booted platform; null if the call does not arrive. */
async function heard(bindings: Record<string, string> = {}): Promise<Readonly<Record<string, unknown>> | null> {
  server = createServer(({ headers }, response) => response.end(JSON.stringify(headers)));
  await new Promise<void>((listening) => server?.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  platform = await bootPlatform({ directory: null, root, bindings, port: testPort(0), log: () => undefined });
  const reply = await fetch(`${platform.url}/calls?at=http://127.0.0.1:${port}/`);
  return reply.ok ? JSON.parse(await reply.text()) : null;
}

test("calls go directly to the network", async () => {
  expect(await heard()).not.toHaveProperty("cf-worker");
});

test("without the binding, a platform calls as a deployment does", async () => {
  vi.stubEnv(NETWORK_BINDING, "off");
  // Only a Worker's own fetch has this header.
  expect(await heard()).toHaveProperty("cf-worker");
});

test("if private addresses are not allowed, the binding does not connect to one", async () => {
  expect(await heard({ ALLOW_PRIVATE_ENDPOINTS: "false" })).toBeNull();
});

test("the binding trusts Miniflare's certificates: those of browsers, and of NODE_EXTRA_CA_CERTS", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollcall-certificates-"));
  const own = join(folder, "own.pem");
  vi.stubEnv("NODE_EXTRA_CA_CERTS", own);
  const { tlsOptions } = networkService(true).network;
  expect(tlsOptions.trustBrowserCas).toBe(true);
  const [one, other] = ["YQ==", "Yg=="].map(
    (text) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`,
  );
  writeFileSync(own, `# ours\n${one}\n\n${other}\n`);
  const trusted = networkService(true).network.tlsOptions.trustedCertificates;
  expect(trusted).toEqual([...tlsOptions.trustedCertificates, one, other]);
  rmSync(folder, { recursive: true });
});
