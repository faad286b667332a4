// The first step of the action of GitHub: finds or installs the Rollcall that runs the eval, and a Node for it. Runs on
// the Node of the job, which may be as old as 20: plain JavaScript, which imports nothing but Node.
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { INPUT_VERSION: version = "", INPUT_PATH: path = "", RUNNER_TEMP, GITHUB_OUTPUT } = process.env;
/** A version, a range without spaces, or a tag. */
const VERSION = /^[\w.^~][\w.+-]*$/;

function fail(message) {
  process.stdout.write(`::error::${message.replaceAll("%", "%25").replaceAll("\n", "%0A")}\n`);
  process.exit(1);
}

/** npm's own output goes to the log. */
function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: RUNNER_TEMP, stdio: ["ignore", "inherit", "inherit"] });
  if (error !== undefined) fail(`${program} could not be run: ${error.message}`);
  if (status !== 0) fail(`${program} ${args.join(" ")} exits ${status}; see its output above`);
}

function installed() {
  if (path !== "") {
    const folder = resolve(path);
    if (existsSync(join(folder, "bin/rollcall.mjs"))) return folder;
    return fail(`path: ${folder} is not a Rollcall: it has no bin/rollcall.mjs`);
  }
  if (version === "") {
    run(process.execPath, [join(ROOT, "scripts/install.mjs"), "--run"]);
    return ROOT;
  }
  if (!VERSION.test(version)) return fail(`version: must be a version or a tag of npm, not ${JSON.stringify(version)}`);
  const { publishedAs: name } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const folder = join(RUNNER_TEMP, "rollcall");
  mkdirSync(folder, { recursive: true });
  run("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", `${name}@${version}`]);
  return join(folder, "node_modules", name);
}

/** The script of the next step needs a Node that reads TypeScript. */
function newEnough() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);
}

function nodeFor(folder) {
  if (newEnough()) return process.execPath;
  for (let at = folder; ; at = dirname(at)) {
    const candidate = join(at, "node_modules/.bin/node");
    if (existsSync(candidate)) return candidate;
    if (at === dirname(at))
      return fail(`Node ${process.versions.node} is too old: use actions/setup-node with Node 24`);
  }
}

if (!RUNNER_TEMP || !GITHUB_OUTPUT)
  fail("RUNNER_TEMP and GITHUB_OUTPUT are not set: this script is a step of an action");
if (path !== "" && version !== "") fail("path: cannot be combined with version");
const folder = installed();
appendFileSync(GITHUB_OUTPUT, `folder=${folder}\nnode=${nodeFor(folder)}\n`);
