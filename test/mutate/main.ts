/**
 * `npm run mutate`: makes one-token edits to the core and to the data of a run, one at a time in a copy of the sources;
 * some test must detect each. Lines go to stdout; with --json they go to stderr, and one object to stdout. Exits with 1
 * if an edit survives or no longer applies.
 */
import { parseArgs } from "node:util";
import { asCommandError, EXIT, type ExitCode, interruption, usageError } from "../../src/cli/exit.ts";
import { printJson } from "../../src/cli/terminal/terminal.ts";
import { CopiedTree, staleEdit } from "./copied-tree.ts";
import type { Edit } from "./edit.ts";
import { EDITS } from "./edits.ts";
import { endTests, isInWorkerd, runTests } from "./test-run.ts";

const HELP = `Usage: npm run mutate -- [flags]

Makes one-token edits to src/core and src/kernel, or lets two statements there change places, in a copy of the
sources, one at a time, and runs the tests that should notice.

      --only K      only the K-th edit
      --at-once N   how many copies to work in; default 2
      --json        print {edits, killed, survived}
      --timeout S   give up after this many seconds
`;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  only: { type: "string" },
  "at-once": { type: "string", default: "2" },
  timeout: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

interface Outcome extends Edit {
  /** Its place in the list, from 1. */
  readonly edit: number;
  /** The first test that failed; null if none did. */
  readonly killed_by: string | null;
  readonly seconds: number;
}

type Task = { readonly edit: Edit; readonly number: number };

const trees: CopiedTree[] = [];

async function mutate(args: string[]): Promise<ExitCode> {
  const { values } = parseArgs({ args, options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return EXIT.good;
  }
  if (values.timeout !== undefined) endAfter(wholeNumber(values.timeout, "timeout"), values.json);
  const stale = staleEdit(EDITS);
  if (stale !== null) throw new Error(stale);
  const tasks = tasksFor(values.only);
  const workers = Math.min(wholeNumber(values["at-once"], "at-once"), tasks.length);
  for (let at = 0; at < workers; at += 1) trees.push(new CopiedTree());
  await requireSound(tasks);
  const log = (line: string) => (values.json ? process.stderr : process.stdout).write(`${line}\n`);
  const queue = tasks.values();
  const outcomes = (await Promise.all(trees.map((tree) => work(tree, queue, log)))).flat();
  outcomes.sort((a, b) => a.edit - b.edit);
  const survived = outcomes.filter(({ killed_by }) => killed_by === null).length;
  const killed = outcomes.length - survived;
  if (values.json) printJson({ edits: outcomes, killed, survived });
  else log(`${killed} killed, ${survived} survived`);
  return survived === 0 ? EXIT.good : EXIT.bad;
}

function tasksFor(only: string | undefined): Task[] {
  const tasks = EDITS.map((edit, at) => ({ edit, number: at + 1 }));
  if (only === undefined) return tasks;
  const number = wholeNumber(only, "only");
  if (number > tasks.length) throw usageError(`--only: there are ${tasks.length} edits`, "only");
  return tasks.slice(number - 1, number);
}

/** An edit proves nothing if the tests fail without it. */
async function requireSound(tasks: readonly Task[]): Promise<void> {
  const [tree] = trees;
  if (tree === undefined) return;
  const tests = [...new Set(tasks.flatMap(({ edit }) => edit.tests))];
  const inNode = tests.filter((test) => !isInWorkerd(test));
  const inWorkerd = tests.filter(isInWorkerd).map((test) => [test]);
  for (const some of [...(inNode.length === 0 ? [] : [inNode]), ...inWorkerd]) {
    const { failed } = await runTests(tree.folder, some);
    if (failed !== null) throw new Error(`a test fails without any edit: ${failed}`);
  }
}

async function work(tree: CopiedTree, queue: Iterable<Task>, log: (line: string) => void): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { edit, number } of queue) {
    const { failed, seconds } = await tree.edited(edit, () => runTests(tree.folder, edit.tests));
    outcomes.push({ ...edit, edit: number, killed_by: failed, seconds });
    const what = `${edit.file}: ${edit.old.trim()} → ${edit.new.trim()}`;
    const how = failed === null ? `SURVIVED ${edit.tests.join(" ")}` : `killed by "${failed}"`;
    log(`${String(number).padStart(3)} ${seconds.toFixed(1)} s  ${what}\n        ${how}`);
  }
  return outcomes;
}

function wholeNumber(text: string, flag: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= 1) return value;
  throw usageError(`--${flag}: ${text} is not a whole number of at least 1`, flag);
}

/** Ends the process with a timer outside the work, so that the limit holds even if the work hangs. */
function endAfter(seconds: number, json: boolean): void {
  const late = new Error(`not done within ${seconds} s`);
  setTimeout(() => fail(late, json), seconds * 1000).unref();
}

function fail(thrown: unknown, json: boolean): never {
  const error = asCommandError(thrown);
  process.stderr.write(`mutate: ${error.message}\n`);
  if (json) printJson({ error: error.failure });
  end(error.exit);
}

function end(exit: ExitCode): never {
  endTests();
  for (const tree of trees) tree.remove();
  process.exit(exit);
}

const argv = process.argv.slice(2);
const json = argv.includes("--json");
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => fail(interruption(), json));
}
try {
  end(await mutate(argv));
} catch (thrown) {
  fail(thrown, json);
}
