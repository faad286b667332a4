/**
 * A published version keeps playing through an upgrade and a rollback: runs that pinned it, and new ones. The later
 * version of the platform speaks another protocol with environment code, so there it ends by name, and nothing else does.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { bundleEnvironment } from "../../src/local/environment-bundle.ts";
import { PACKAGE_ROOT } from "../../src/local/package-root.ts";
import type { RollcallClient } from "../../src/sdk/client.ts";
import { startScriptedModel } from "../fakes/scripted-model.ts";
import { WAIT } from "../hang-limits.ts";
import { pack } from "../hub/packages.ts";
import { LivePlatform, type Mix } from "./live-platform.ts";
import { bundleNew, bundleNext, type Release } from "./releases.ts";

const folder = mkdtempSync(join(tmpdir(), "rollcall-next-"));
let [now, next]: Release[] = [];
beforeAll(async () => {
  [now, next] = [await bundleNew(), await bundleNext(folder)];
});
afterAll(() => rmSync(folder, { recursive: true }));

const ROLLOUTS = 8;
const guess = { tool_calls: [{ name: "guess", arguments: { number: 50 } }] };

function mixesOf(before: Release | undefined, after: Release | undefined): { all: Mix; upgraded: Mix; half: Mix } {
  if (before === undefined || after === undefined) throw new Error("nothing was bundled");
  return {
    all: { objects: before, consumers: before },
    upgraded: { objects: after, consumers: after },
    half: { objects: before, consumers: after },
  };
}

/** Answers only while it is open, so that rollouts are under way when the platform changes. */
async function startModel() {
  let gate = Promise.withResolvers<void>();
  const model = await startScriptedModel({
    reply: async ({ messages }) => {
      const said = messages.filter(({ role }) => role === "assistant").length;
      if (said > 0) await gate.promise;
      return said < 3 ? guess : "I give up.";
    },
  });
  onTestFinished(() => model.stop());
  return {
    ...{ url: model.url, requests: model.requests },
    open: () => gate.resolve(),
    shut: () => {
      gate = Promise.withResolvers<void>();
    },
  };
}

async function openHub(platform: LivePlatform, release: Release) {
  const made = await platform.client(release).organizations.bootstrap({ name: "a laboratory" });
  const client = (of: Release) => platform.client(of, made.key.key ?? "");
  const { text: code } = await bundleEnvironment(join(PACKAGE_ROOT, "environments/guess-number/environment.ts"));
  const publish = async (of: Release, version: string) =>
    await client(of).environments.publish(await pack({ name: "alice/guess", version, code: `${code}// ${version}` }));
  return { client, publish };
}

async function ended(client: RollcallClient, id: string) {
  await vi.waitUntil(async () => (await client.runs.get(id)).finished_at !== null, WAIT);
  const run = await client.runs.get(id);
  const rollouts = [];
  for await (const { outcome, reason, reward } of client.rollouts.list(id)) rollouts.push({ outcome, reason, reward });
  return { run, rollouts };
}

test("a version plays the same in a new process, after an upgrade under way and after a rollback", async () => {
  const { all, upgraded, half } = mixesOf(now, now && { ...now, name: "next" });
  const model = await startModel();
  const platform = new LivePlatform();
  await platform.boot(all);
  const { client, publish } = await openHub(platform, all.objects);
  const { digest } = await publish(all.objects, "1.0.0");
  const request = {
    ...{ environment: "alice/guess@^1", model: "m", endpoint: { base_url: model.url } },
    ...{ num_examples: ROLLOUTS, seed: 5, max_concurrent: 4 },
  };
  const reports = [];
  for (const mixes of [[all], [all, upgraded], [upgraded, half, all]]) {
    model.shut();
    const [first] = mixes;
    if (first === undefined) continue;
    await platform.boot(first);
    const { id } = await client(first.objects).runs.create(request);
    for (const mix of mixes.slice(1)) {
      const seen = model.requests.length;
      await vi.waitUntil(() => model.requests.length > seen, WAIT);
      await platform.boot(mix);
    }
    model.open();
    const last = mixes.at(-1)?.objects ?? first.objects;
    reports.push(await ended(client(last), id));
  }
  for (const { run, rollouts } of reports) {
    expect(run).toMatchObject({ status: "completed", counts: { scored: ROLLOUTS }, environment: { digest } });
    expect(rollouts).toEqual(reports[0]?.rollouts);
  }
});

test("a protocol that a deployment does not speak is refused by name at publish, and ends rollouts by name", async () => {
  const { all, upgraded } = mixesOf(now, next);
  const model = await startModel();
  const platform = new LivePlatform();
  await platform.boot(all);
  const { client, publish } = await openHub(platform, all.objects);
  await publish(all.objects, "1.0.0");
  const own = {
    model: "m",
    endpoint: { base_url: model.url },
    num_examples: ROLLOUTS,
    max_concurrent: 2,
    min_scored: 0,
  };
  const published = await client(all.objects).runs.create({ ...own, environment: "alice/guess" });
  const bundled = await client(all.objects).runs.create({ ...own, environment: "guess-number" });
  await vi.waitUntil(() => model.requests.length >= 4, WAIT);

  await platform.boot(upgraded);
  const words = "its code speaks protocol 1, and this deployment speaks 2";
  await expect(publish(upgraded.objects, "1.0.1")).rejects.toThrow(words);
  await expect(client(upgraded.objects).runs.create({ ...own, environment: "alice/guess" })).rejects.toThrow(words);
  model.open();
  const { run, rollouts } = await ended(client(upgraded.objects), published.id);
  expect(run.counts.failed).toEqual({ environment: ROLLOUTS });
  expect(rollouts).toHaveLength(ROLLOUTS);
  for await (const { id } of client(upgraded.objects).rollouts.list(published.id)) {
    expect((await client(upgraded.objects).rollouts.get(id)).error?.message).toContain(words);
  }
  expect((await ended(client(upgraded.objects), bundled.id)).run.counts).toMatchObject({ scored: ROLLOUTS });

  await platform.boot(all);
  const again = await client(all.objects).runs.create({ ...own, environment: "alice/guess" });
  expect((await ended(client(all.objects), again.id)).run.counts).toMatchObject({ scored: ROLLOUTS });
});
