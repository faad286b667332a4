/** A run whose object's storage is gone: the run's row is in D1, and what only the object had is lost. */
import { beforeAll, expect, test } from "vitest";
import { ApiError } from "../../../src/contract/api-error.ts";
import { RunAudit } from "../../../src/contract/audit.ts";
import { isUnreadable } from "../../../src/kernel/kit/storage-faults.ts";
import { openPlatform, rolloutAt, type TestApi } from "../platform.ts";
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
  for (const [run, baseline, param] of [
    [lost, whole, "id"],
    [whole, lost, "baseline"],
  ] as const) {
    const reply = await api.ask(`/v1/runs/${run}/compare?baseline=${baseline}`);
    expect(reply.status).toBe(500);
    const { error } = ApiError.parse(await reply.json());
    expect(error).toMatchObject({ code: "run_unreadable", param });
  }
});

test("an error of the runtime means damaged storage, unless it is marked as temporary", () => {
  const damaged = ["file is not a database: SQLITE_NOTADB", "internal error; reference = abc"];
  for (const message of damaged) expect(isUnreadable(new Error(message))).toBe(true);
  const passing = Object.assign(new Error("internal error; reference = abc"), { retryable: true });
  for (const other of [new Error("Network connection lost."), passing, "no error"]) {
    expect(isUnreadable(other)).toBe(false);
  }
});
