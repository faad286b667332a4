/** Quarantined work: what is recorded in a death, what counts against it, and how its run ends. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { outsideQuarantine, Quarantine } from "../../../src/kernel/environment/quarantine.ts";
import { expectLaw, openPlatform, requestsOf, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let platform: TestApi;
beforeAll(async () => {
  platform = await openPlatform();
});

const hang = { fault: { kind: "hang" } } as const;
const KEY = "rollout/0/0/0";

/** A run whose rollouts wait for the model. */
async function waiting(count: number): Promise<string> {
  const words = Array.from({ length: count }, () => "slow");
  const model = script(RIGHT, { slow: [hang] });
  const request = { environment: "gsm8k", dataset: questions(count, words), model };
  const { id } = await platform.start(request);
  await requestsOf(model, count);
  return id;
}

/** Each process records it again; `died`: how the previous process ended. */
const admitToQuarantine = (id: string, boot: string, died: boolean, key = KEY) =>
  platform.inRun(id, (run) => run.admitToQuarantine(key as typeof KEY, boot, died));

test("work that was recorded in two deaths is given up, however often it is requested", async () => {
  const id = await waiting(1);
  expect(await admitToQuarantine(id, "first", true)).toEqual({ deaths: 0 });
  expect(await admitToQuarantine(id, "second", true)).toEqual({ deaths: 1 });
  expect(await admitToQuarantine(id, "third", true)).toBeNull();
  expect(await admitToQuarantine(id, "third", true)).toBeNull();
  expect(await admitToQuarantine(id, "fourth", true)).toBeNull();
  const head = await platform.inRun(id, (_run, { storage }) => storage.kv.get("head"));
  expect(head).toMatchObject({ given_up: 1 });
});

test("an orderly stop, or a second record by the same process, counts against no work", async () => {
  const id = await waiting(1);
  expect(await admitToQuarantine(id, "first", true)).toEqual({ deaths: 0 });
  expect(await admitToQuarantine(id, "first", true)).toEqual({ deaths: 0 });
  expect(await admitToQuarantine(id, "second", false)).toEqual({ deaths: 0 });
  expect(await admitToQuarantine(id, "third", false)).toEqual({ deaths: 0 });
});

test("a death while the work awaits an outside call does not count; earlier ones count until it has ended", async () => {
  const id = await waiting(1);
  await admitToQuarantine(id, "first", true);
  expect(await admitToQuarantine(id, "second", true)).toEqual({ deaths: 1 });
  await platform.inRun(id, (run) => run.clear(KEY, false));
  expect(await admitToQuarantine(id, "third", true)).toEqual({ deaths: 1 });
  await platform.inRun(id, (run) => run.clear(KEY, true));
  expect(await admitToQuarantine(id, "fourth", true)).toEqual({ deaths: 0 });
});

test("a run in which three rollouts were given up ends, and its running rollouts stop without another hook", async () => {
  const id = await waiting(4);
  for (const group of [0, 1, 2]) {
    for (const boot of ["first", "second", "third"]) {
      await admitToQuarantine(id, boot, true, `rollout/${group}/0/0`);
    }
  }
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run).toMatchObject({
    status: "failed",
    error: { code: "environment_stops_platform" },
    counts: { cancelled: { overload: 4 } },
  });
  expect(run.error?.message).toContain("3 of its rollouts crashed or hung the platform");
  expect(await admitToQuarantine(id, "fourth", true, "rollout/3/0/0")).toBeNull();
});

test("a rollout whose task is never made is ended by its run", async () => {
  const id = await waiting(1);
  for (const boot of ["first", "second", "third"]) {
    await admitToQuarantine(id, boot, true, "start/0/0/0");
  }
  const run = await platform.ended(id);
  expectLaw(run.counts);
  expect(run.counts.failed).toEqual({ environment: 1 });
});

test("organisations with quarantined work take turns, however much one of them has", async () => {
  const log: string[] = [];
  const one = async (org_id: string) => {
    const court = {
      admitToQuarantine: async () => {
        log.push(org_id);
        return { deaths: 0 };
      },
      clear: async () => undefined,
    };
    await new Quarantine(env, () => court, KEY, { org_id }).run(() => scheduler.wait(1));
  };
  const busy = Array.from({ length: 30 }, () => one("busy"));
  await vi.waitFor(() => expect(log.length).toBeGreaterThan(0));
  const before = log.length;
  const others = [one("other"), outsideQuarantine("third", async () => log.push("third"))];
  await Promise.all([...others, ...busy]);
  const next = log.slice(before);
  expect(next.indexOf("other")).toBeLessThan(4);
  expect(next.indexOf("third")).toBeLessThan(4);
});

test("quarantined work computes one at a time, each until it awaits an outside call", async () => {
  const log: string[] = [];
  const one = (name: string) => {
    const court = {
      admitToQuarantine: async () => {
        log.push(`${name} named`);
        return { deaths: 0 };
      },
      clear: async () => {
        log.push(`${name} cleared`);
      },
    };
    const quarantine = new Quarantine(env, () => court, KEY);
    return quarantine.run(async () => {
      await null;
      log.push(`${name} computes`);
      await scheduler.wait(20);
      return name;
    });
  };
  expect(await Promise.all([one("a"), one("b")])).toEqual(["a", "b"]);
  expect(log).toEqual(["a named", "a computes", "a cleared", "b named", "b computes", "b cleared"]);
});
