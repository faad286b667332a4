/** Errors in a command line are reported before a platform is searched for or booted. */
import { expect, test } from "vitest";
import { COMMANDS, type CommandName } from "../../src/cli/commands.ts";
import { asCommandError, EXIT } from "../../src/cli/exit.ts";
import { ApiRequestError } from "../../src/sdk/request-error.ts";

async function refusal(command: () => Promise<unknown>): Promise<string> {
  try {
    await command();
  } catch (thrown) {
    const { exit, message } = asCommandError(thrown);
    expect(exit).toBe(EXIT.usage);
    return message;
  }
  throw new Error("it was accepted");
}

const REFUSED: [CommandName, string, string][] = [
  ["run list", "--status odd", "--status: odd is not one of queued, running"],
  ["run list", "run_1", "this command takes no arguments"],
  ["run list", "--limit 0", "--limit: must be a whole number of at least 1"],
  ["run results", "", "a run is required"],
  ["run cancel", "run_1 run_2", "a run, not run_1, run_2"],
  ["run watch", "--json", "at least one run is required"],
  ["run update", "run_1", "set at least one flag to change"],
  ["run update", "run_1 -c 0", "--max-concurrent: must be a whole number of at least 1"],
  ["run retry", "run_1 --class provider --class luck", "--class: luck is not one of provider"],
  ["run pause", "", "a run is required"],
  ["run audit", "a b", "a run, not a, b"],
  ["rollout fork", "ro_1", "--turn: is required; the first turn is 1"],
  ["rollout fork", "ro_1 --turn 1 -S no", "--sampling-args: it is not a JSON object"],
  ["rollout review", "ro_1", "--mark: set a mark, a note or a value"],
  ["rollout review", "ro_1 --score right=yes", "--score: right: yes is not a number"],
  ["rollout review", "ro_1 --list --mark good", "--list and --delete take no part of a review"],
  ["trigger create", "x --timezone UTC", "--timezone: needs --cron"],
  ["trigger update", "x --no-schedule --cron * --timezone UTC", "--no-schedule: cannot be combined with --cron"],
  ["dataset push", "no-such-file", "no-such-file: no such file"],
  ["dataset push", ".", ".: is a folder"],
  ["dataset push", "- -a max=1", "needs --environment"],
  ["dataset show", "d -n 1001", "--num-rows: at most 1000"],
  ["endpoint add", "x", "--base-url: is required, -b URL, or the name of a known server: openai, openrouter"],
  ["endpoint add", "groq -m m", "groq needs a key: set GROQ_API_KEY, or name another variable with -k VAR"],
  ["endpoint add", "x --preset vllm -b http://h/v1", "--preset: cannot be combined with --base-url"],
  ["endpoint add", "x --preset unknown", "--preset: unknown is not one of openai, "],
  ["endpoint add", "x -b nowhere", "--base-url: nowhere is not a URL"],
  ["endpoint add", "x -b http://h/v1 -k NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"],
  ["endpoint add", "x -b http://h/v1 --input-price 1", "--output-price: is required: set both prices"],
  ["endpoint update", "x", "set at least one flag to change"],
  ["endpoint update", "x --rpm 5 --no-rpm", "--no-rpm: cannot be combined with --rpm"],
  ["secret set", "X --from-env NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"],
  ["login", "", "--platform: is required"],
  ["login", "--platform nowhere", "--platform: nowhere is not an http or https URL"],
  ["login", "--profile local", "needs no login"],
  ["logout", "--profile nobody", "there is no profile nobody"],
  ["org update", "", "set at least one flag to change"],
  ["org update", "--any-host --allow-host h", "--any-host: cannot be combined with --allow-host"],
  ["run delete", "run_1", "--yes: is required without a terminal"],
  ["project delete", "art", "--confirm: is required: --confirm art"],
  ["project delete", "art --confirm math", "--confirm: math is not art"],
  ["org delete", "", "--confirm: is required, with the organisation's name"],
  ["org limits", "org_1 --storage-bytes some", "--storage-bytes: some is not a number"],
  ["project create", "", "the project is required"],
  ["project update", "p --runs-days 0", "--runs-days: must be a whole number of at least 1"],
  ["key create", "k", "--scope: is required"],
  ["key create", "k --scope all", "--scope: all is not one of runs:read"],
  ["key create", "k --scope trainer --expires-in soon", "--expires-in: soon is not a time such as 90d"],
  ["key create", "k --scope trainer --project p --organization", "--organization: cannot be combined with --project"],
  ["key rotate", "key_1 --overlap 5", "--overlap: 5 is not a time"],
  ["key update", "key_1 --rpm 5 --no-rpm", "--no-rpm: cannot be combined with --rpm"],
  ["person role", "ann@example.com boss", "a role are required: owner, developer, viewer"],
  ["invitation create", "ann@example.com", "--role: is required"],
  ["invitation accept", "--platform http://h", "send it on stdin with --token-stdin"],
  ["audit-log", "--limit 0", "--limit: must be a whole number of at least 1"],
  ["run list", "--profile nobody", "Log in: npx rollcall login --profile nobody"],
  ["start", "--port 6000", "--port: browsers and fetch refuse to connect to port 6000"],
  ["start", "--environment gsm8k", "calculator, guess-number, grid-walk, reverse-text"],
  ["train", "a b", "exactly one environment is required, not a, b"],
  ["train", "calculator -m m -b http://h/v1", "use your own trainer: pull or push:URL"],
  ["train", "calculator -m m --fleet gpus", "use your own trainer: pull or push:URL"],
  ["train", "gsm8k -m m --trainer pull -b http://h/v1 --initial-weights /w", "--initial-weights: needs --fleet"],
  ["train", "calculator --trainer mail", "mail is not embedded, pull or push:URL"],
  ["train", "calculator --trainer push:nowhere", "push:nowhere is not embedded"],
  ["train", "calculator --learning-rate -1", "--learning-rate: must be 0 or more"],
  ["train", "calculator --passes 17", "--passes: must be at most 16"],
  ["train", "calculator --max-steps 0", "--max-steps: must be a whole number of at least 1"],
  ["completion", "powershell", "use bash, zsh or fish"],
];

/** The handler with the name in the title: `runListCommand`. */
function handlerOf(name: CommandName) {
  const title = `${name.replace(/ (.)/g, (_, letter) => letter.toUpperCase())}Command`;
  const run = (argv: readonly string[]) => COMMANDS.find((it) => it.name === name)?.run(argv);
  return Object.defineProperty(run, "name", { value: title });
}

test.each(REFUSED.map(([name, argv, message]) => [handlerOf(name), argv, message] as const))(
  "%o %s is refused as wrong usage",
  async (command, argv, message) => {
    const words = argv.split(" ").filter((word) => word !== "");
    expect(await refusal(async () => command(words))).toContain(message);
  },
);

test("the error for a judge without an endpoint names its flag", () => {
  const message = "judged-qa needs the judge default";
  const type = "invalid_request_error";
  const refused = { code: "missing_judge", message, param: "judges.default", type } as const;
  const error = new ApiRequestError(400, refused, { requestId: null, retryAfterMs: null });
  expect(asCommandError(error)).toMatchObject({
    exit: EXIT.usage,
    message: `${message}, or --judge default=MODEL@ENDPOINT`,
  });
});

test("a refusal keeps its details for programs: what is missing, and of which budget", () => {
  const details = { shortfall_micros: 6400, budget_id: "bud_1" };
  const refused = { code: "budget_exhausted", message: "no", param: null, type: "billing_error", ...details } as const;
  const error = new ApiRequestError(402, refused, { requestId: null, retryAfterMs: null });
  expect(asCommandError(error).failure).toEqual(refused);
});

test("a refused index of a turn is explained: the flag counts from 1", () => {
  const message = "turn: must be the index of a turn that another turn can follow: 0 to 2 (the first turn is 0)";
  const refused = { code: "invalid_request", message, param: "turn", type: "invalid_request_error" } as const;
  const error = new ApiRequestError(400, refused, { requestId: null, retryAfterMs: null });
  expect(asCommandError(error).message).toBe(`${message}; --turn is this index plus 1`);
});
