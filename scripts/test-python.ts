/**
 * `npm run test:python`: the tests of the Python package in `python/`, after its types and its lint. Three virtual
 * environments are made once in the user's cache folder: for the tests, for verifiers 0.4 and for the legacy API. The
 * environments that tests install by our own commands are kept there, too (`ROLLCALL_TEST_CACHE`: another folder).
 * Arguments are passed on to pytest. A platform is booted for the tests that need one, unless `ROLLCALL_URL`,
 * `ROLLCALL_API_KEY` and `ROLLCALL_TEST_POLICY_URL` name one on this machine. `ROLLCALL_TEST_ENVIRONMENTS` names the
 * folder `environments` of a checkout of PrimeIntellect-ai/verifiers, whose environments are then compared too.
 * Without Python 3.11 the command says so and ends with 0.
 */
import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { isRunning } from "../src/local/processes.ts";
import { makeThrowAwayDirectory } from "../src/local/state-directory.ts";
import { deathOf, endGroup, serve } from "../test/local/served-platform.ts";
import { testPort } from "../test/local/test-port.ts";
import { cacheFolder, pythonVenv, run, type Venv } from "../test/python/python-venv.ts";

const PACKAGE = resolve(import.meta.dirname, "../python");
const REQUIREMENTS = join(PACKAGE, "tests/requirements");
/** `requires-python` of the package. */
const OLDEST = [3, 11] as const;
/** The environments of PrimeIntellect-ai/verifiers that are compared; test_verifiers_v1.py has them. */
const COMPARED = [
  "color_codeword",
  "code_golf",
  "glossary",
  "scratchpad",
  "kuhn_poker",
  "interception",
  "proposer_solver",
  "gsm8k",
  "reverse_text",
  "alphabet_sort",
];

async function venvOf(name: string, requirements: string): Promise<Venv | null> {
  const variable = `ROLLCALL_${name.toUpperCase().replaceAll("-", "_")}_VENV`;
  return await pythonVenv(name, join(REQUIREMENTS, requirements), variable, OLDEST);
}

/** Runs a program with our output, and gives its exit code. */
async function pass(venv: Venv, argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(venv.python, argv, { cwd: PACKAGE, env, stdio: "inherit" });
  return await new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (code) => done(code ?? 1));
  });
}

async function installEnvironments(venv: Venv, folder: string): Promise<void> {
  const found = COMPARED.map((name) => join(folder, name)).filter((path) => existsSync(path));
  await run(venv.python, ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", ...found]);
}

/** Runs `use` with the variables of a platform that is there for it alone, or of the one that they already name. */
async function withPlatform<T>(use: (variables: Readonly<Record<string, string>>) => Promise<T>): Promise<T> {
  const given = process.env["ROLLCALL_URL"];
  if (given !== undefined) {
    process.stderr.write(`the tests use the platform at ROLLCALL_URL: ${given}\n`);
    return await use({});
  }
  const directory = makeThrowAwayDirectory();
  try {
    const served = await serve(directory, testPort(0));
    try {
      return await use({
        ROLLCALL_URL: served.url,
        ROLLCALL_API_KEY: served.key,
        ROLLCALL_TEST_POLICY_URL: served.policy,
      });
    } finally {
      if (!isRunning(served.node)) process.stderr.write(`the platform ended during the tests:\n${served.said()}\n`);
      endGroup(served);
      await deathOf(served.workerd);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function main(pytest: readonly string[]): Promise<number> {
  const tests = await venvOf("python-tests", "tests.txt");
  if (tests === null) return 0;
  const v1 = await venvOf("python-verifiers-v1", "verifiers-v1.txt");
  const legacy = await venvOf("python-verifiers-legacy", "verifiers-legacy.txt");
  if (v1 === null || legacy === null) return 0;
  const environments = process.env["ROLLCALL_TEST_ENVIRONMENTS"];
  if (environments !== undefined) await installEnvironments(v1, environments);
  const env = {
    ...process.env,
    PYTHONPATH: join(PACKAGE, "src"),
    ROLLCALL_TEST_V1_PYTHON: v1.python,
    ROLLCALL_TEST_LEGACY_PYTHON: legacy.python,
    ROLLCALL_TEST_CACHE: process.env["ROLLCALL_TEST_CACHE"] ?? join(cacheFolder(), "python-tests-cache"),
  };
  for (const argv of [
    ["-m", "mypy"],
    ["-m", "ruff", "check", "--no-cache", "."],
  ]) {
    const code = await pass(tests, argv, env);
    if (code !== 0) return code;
  }
  return await withPlatform((platform) => pass(tests, ["-m", "pytest", "-rs", ...pytest], { ...env, ...platform }));
}

process.exitCode = await main(process.argv.slice(2));
