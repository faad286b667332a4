/** What is wrong with a request is said before a platform is booted for it. */
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { testPort } from "../local/test-port.ts";
import { command } from "./run-rollcall.ts";

const TEMPLATE = resolve(import.meta.dirname, "../../src/cli/templates/single-turn");
const NOBODY = `http://127.0.0.1:${testPort(48)}/v1`;
const base = mkdtempSync(join(tmpdir(), "rollcall-before-boot-"));
const state = join(base, "state");

beforeAll(() => {
  cpSync(TEMPLATE, join(base, "letters"), { recursive: true });
  const manifest = { name: "letters", version: "0.1.0", rollcall: { environment: "./environment.ts" } };
  writeFileSync(join(base, "letters/package.json"), JSON.stringify(manifest));
});
afterAll(() => rmSync(base, { recursive: true }));

test.each([
  ["eval nope", 2, "no environment is called nope; known: "],
  ["eval calculator -a maxx=1", 2, "environment_args.maxx is not a known field"],
  ["eval calculator -a max=many", 2, "environment_args.max: "],
  [
    "eval judged-qa -m m -b http://127.0.0.1:1/v1",
    2,
    'judged-qa needs the judge default: set {"endpoint": …, "model": …}, or --judge default=MODEL@ENDPOINT',
  ],
  ["eval calculator --judge quality=m@other", 2, "calculator has no judge called quality: it has none"],
  [`eval gsm8k -m m -b ${NOBODY}`, 2, "gsm8k has no rows of its own: add --dataset"],
  ["eval gsm8k", 2, "gsm8k needs a model: set its endpoint with -b"],
  [`eval calculator -m m -b ${NOBODY}`, 4, `the endpoint ${NOBODY} is not reachable`],
  ["eval ./letters --force -a lenght=3", 2, "environment_args.lenght is not a known field"],
  ["eval ./letters --force -a length=0", 2, "environment_args.length: "],
  ["generate calculator -a maxx=1 --out rows.jsonl", 2, "environment_args.maxx is not a known field"],
  ["train calculator -a maxx=1", 2, "environment_args.maxx is not a known field"],
  ["train gsm8k --force", 2, "gsm8k has no rows of its own: add --dataset"],
])("%s", async (words, code, message) => {
  const result = await command(words.split(" "), { env: { ROLLCALL_DIR: state }, cwd: base });
  expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(message)]);
  expect(existsSync(state), "a platform was booted").toBe(false);
});
