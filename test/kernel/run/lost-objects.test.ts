/** A run whose object's storage is gone: the run's row is in D1, and what only the object had is lost. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { ApiError } from "../../../src/contract/api-error.ts";
import { RunAudit } from "../../../src/contract/audit.ts";
import { isPassing, isUnreadable } from "../../../src/kernel/kit/storage-faults.ts";
import { interposed } from "../hand-made.ts";
import { openPlatform, release, requestsOf, rolloutAt, type TestApi } from "../platform.ts";
import { questions, RIGHT } from "../rows.ts";
import { script } from "../script.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openPlatform();
});

/** The same as if the file of the object's storage was deleted while the platform was stopped. */
async function deleteStorage(id: string): Promise<void> {
  await api.inRun(id, async (_, { storage }) => {
    await storage.deleteAlarm();
    await storage.deleteAll();
  });
  const aborted = api.inRun(id, (_, state) => state.abort("its storage is gone"));
  await expect(aborted).rejects.toThrow();
}

async function codeOf(path: string): Promise<string> {
  const reply = await api.ask(path);
  expect(reply.status, path).toBe(500);
  return ApiError.parse(await reply.json()).error.code;
}

/** Changes are written to D1 within a second: here at once. */
async function notifyDatabase(id: string): Promise<void> {
  await api.inRun(id, async (run) => {
    run.now = () => Date.now() + 5000;
    await run.alarm();
  });
}

async function lostRun(): Promise<string> {
  const request = { environment: "gsm8k", dataset: questions(2), model: script(RIGHT) };
  const { id } = await api.finish(request);
  await notifyDatabase(id);
  await deleteStorage(id);
  return id;
}

test("if the storage of a run's object is gone, reads of it fail with a code of their own, and nothing is begun again", async () => {
  const id = await lostRun();
  const paths = ["results", "export", "events", "metrics"].map((what) => `/v1/runs/${id}/${what}`);
  for (const path of [...paths, `/v1/rollouts/${rolloutAt(id)}`]) {
    expect(await codeOf(path)).toBe("run_unreadable");
  }
  // D1 has the whole report of an ended run.
  expect(await api.run(id)).toMatchObject({ status: "completed", counts: { scored: 2 } });
  expect(await api.inRun(id, (run) => run.view())).toBeNull();
});

test("the audit of a run without its object breaks the rule object_missing", async () => {
  const id = await lostRun();
  const audit = RunAudit.parse(await (await api.ask(`/v1/runs/${id}/audit`)).json());
  expect(audit).toMatchObject({ holds: false, counts: { scored: 2 } });
  expect(audit.violations.map(({ rule }) => rule)).toEqual(["object_missing"]);
});

test("a run that had not ended when its object's storage was lost fails with that code", async () => {
  const hangs = [{ fault: { kind: "hang" } }] as const;
  const request = { environment: "gsm8k", dataset: questions(1), model: script(hangs) };
  const { id } = await api.start(request);
  await notifyDatabase(id);
  await deleteStorage(id);
  const lost = await api.run(id);
  expect(lost).toMatchObject({ status: "failed", error: { code: "run_unreadable" }, status_reason: null });
  const list = await (await api.ask("/v1/runs?status=failed")).json<{ data: { id: string }[] }>();
  expect(list.data.map((run) => run.id)).toContain(id);
  expect(await api.run(id)).toEqual(lost);
});

test("commands to a run whose object's storage is lost are refused", async () => {
  const id = await lostRun();
  for (const what of ["cancel", "pause", "resume", "retry"]) {
    const reply = await api.post(`/v1/runs/${id}/${what}`, {});
    const { error } = ApiError.parse(await reply.json());
    expect([what, reply.status, error.code]).toEqual([what, 500, "run_unreadable"]);
  }
});

test("a run whose object's storage is lost cannot be compared, and is named by its parameter", async () => {
  const request = { environment: "gsm8k", dataset: questions(2), model: script(RIGHT) };
  const [lost, { id: whole }] = [await lostRun(), await api.finish(request)];
  for (const [path, param] of [
    [`${lost}/compare?baseline=${whole}`, "id"],
    [`${whole}/compare?baseline=${lost}`, "baseline"],
    [`${lost}/compare/tasks?baselines=${whole}`, "id"],
    [`${whole}/compare/tasks?baselines=${lost}`, "baselines"],
  ] as const) {
    const reply = await api.ask(`/v1/runs/${path}`);
    expect(reply.status).toBe(500);
    const { error } = ApiError.parse(await reply.json());
    expect(error).toMatchObject({ code: "run_unreadable", param });
  }
});

const MASKED = "internal error; reference = abc";

test("only SQLite's own errors mean damaged storage; on one machine also the error of an object that does not open", () => {
  const local = { ...env, LIVE_OBJECT_CEILING: 100 };
  for (const message of ["file is not a database: SQLITE_NOTADB", "SQLITE_CORRUPT_VTAB: malformed"]) {
    expect([isUnreadable(env, new Error(message)), isPassing(env, new Error(message))]).toEqual([true, false]);
  }
  const masked = new Error(`RPC: ${MASKED}`);
  expect([isUnreadable(env, masked), isPassing(env, masked)]).toEqual([false, true]);
  expect([isUnreadable(local, masked), isPassing(local, masked)]).toEqual([true, false]);
  const marked = Object.assign(new Error(MASKED), { retryable: true });
  for (const passing of [new Error("Network connection lost."), new Error("D1 DB is overloaded."), marked]) {
    expect([isUnreadable(local, passing), isPassing(local, passing)]).toEqual([false, true]);
  }
  for (const other of [new Error("no such table: runs"), "no error"]) {
    expect([isUnreadable(env, other), isPassing(env, other)]).toEqual([false, false]);
  }
});

test("a request whose object fails for a moment is answered 503, and changes nothing of the run", async () => {
  const request = { environment: "gsm8k", dataset: questions(1), model: script([{ fault: { kind: "hang" } }]) };
  const { id } = await api.start(request);
  const { RUN } = env;
  env.RUN = interposed(RUN, "view", async (call, name) => {
    if (!name.endsWith(id)) return await call();
    throw new Error(MASKED);
  });
  try {
    const reply = await api.ask(`/v1/runs/${id}`);
    expect([reply.status, reply.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(ApiError.parse(await reply.json()).error.code).toBe("unavailable");
  } finally {
    env.RUN = RUN;
  }
  expect(await api.run(id)).toMatchObject({ status: "running", error: null });
  await api.post(`/v1/runs/${id}/cancel`, {});
});

test("rollouts whose object fails for many minutes are not given up", async () => {
  const model = script(RIGHT, undefined, { held: true });
  const { id } = await api.start({ environment: "gsm8k", dataset: questions(1), model });
  const rollout = rolloutAt(id);
  const [{ idempotency_key = "" } = {}] = await requestsOf(model, 1);
  const { ROLLOUT } = env;
  let asked = 0;
  env.ROLLOUT = interposed(ROLLOUT, "ask", async (call, name) => {
    if (!name.includes(id)) return await call();
    asked += 1;
    throw new Error(MASKED);
  });
  try {
    // An object that is unreachable for another reason is given up after 12 questions.
    for (let minutes = 1; minutes <= 600; minutes += 10) {
      await api.inRun(id, async (run) => {
        run.now = () => Date.now() + minutes * 60_000;
        await run.alarm();
        run.now = () => Date.now();
      });
    }
  } finally {
    env.ROLLOUT = ROLLOUT;
  }
  expect(asked).toBeGreaterThan(12);
  expect((await api.rollout(rollout)).status).toBe("running");
  await release(idempotency_key);
  expect((await api.ended(id)).counts).toMatchObject({ scored: 1, failed: {} });
});
