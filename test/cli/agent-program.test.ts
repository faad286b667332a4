/** The words of an agent's program, and its variables. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LeasedRollout } from "../../src/agents/wire.ts";
import { programCommand } from "../../src/cli/agent/program-words.ts";
import { variablesOf } from "../../src/cli/agent/surroundings.ts";

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "rollcall-words-")));
  for (const name of ["agent.py", "task.json", "sh"]) writeFileSync(join(path, name), "");
  writeFileSync(join(path, "run.sh"), "#!/bin/sh\n");
  chmodSync(join(path, "run.sh"), 0o755);
  mkdirSync(join(path, "test"));
  return path;
}

test("words that are files here become absolute, because the program runs elsewhere", () => {
  const here = folder();
  const { command, cwd } = programCommand(["sh", "agent.py", "test", "-c", "task.json", "nowhere.py"], undefined, here);
  expect(command).toEqual(["sh", join(here, "agent.py"), "test", "-c", "task.json", "nowhere.py"]);
  expect(cwd).toBeNull();
  expect(programCommand(["./run.sh", "x"], undefined, here).command).toEqual([join(here, "run.sh"), "x"]);
});

test("with a folder to run in, the words stay as they were given, and the program is looked up there", () => {
  const here = folder();
  const words = ["./run.sh", "agent.py"];
  expect(programCommand(words, here, "/")).toEqual({ command: words, cwd: here });
  expect(() => programCommand(words, "/", here)).toThrow("./run.sh: not found or not executable");
  expect(() => programCommand(words, "nowhere", here)).toThrow(`--cwd: ${join(here, "nowhere")} is not a folder`);
});

test("a program gets neither this command's key nor what its own clients would add to a request", () => {
  const leased: LeasedRollout = {
    ...{ lease: 1, group: 0, slot: 0, attempt: 0, example_id: 0, lease_s: 60, expires_at: 0, deadline: null },
    ...{ rollout_id: "ro_1", run_id: "run_1", model: "m", key: "rkm_1", base_url: "http://h/v1" },
    ...{ anthropic_base_url: "http://h", task: { question: "a\0b" }, prompt: [{ role: "user", content: "a\0b" }] },
  };
  const own = { PATH: "/bin", ROLLCALL_API_KEY: "rk_1", ANTHROPIC_AUTH_TOKEN: "sk", OPENAI_API_KEY: "sk-own" };
  const variables = variablesOf(leased, { path: "/f", result: "/f/result.json", remove: async () => undefined }, own);
  expect(variables).toEqual({
    ...{ PATH: "/bin", OPENAI_BASE_URL: "http://h/v1", OPENAI_API_BASE: "http://h/v1", OPENAI_API_KEY: "rkm_1" },
    ...{ OPENAI_MODEL: "m", ANTHROPIC_BASE_URL: "http://h", ANTHROPIC_API_KEY: "rkm_1", ROLLCALL_MODEL: "m" },
    ...{ ROLLCALL_ROLLOUT_ID: "ro_1", ROLLCALL_RUN_ID: "run_1", ROLLCALL_TASK_FILE: "/f/task.json" },
    ...{ ROLLCALL_PROMPT_FILE: "/f/prompt.json", ROLLCALL_RESULT_FILE: "/f/result.json" },
    // A variable cannot hold the prompt's zero byte; the JSON of the task has none.
    ROLLCALL_TASK: '{"question":"a\\u0000b"}',
  });
});
