/** What is wrong with a command line is said before a platform is looked for, let alone booted. */
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
  ["run list", "run_1", "no argument is taken here"],
  ["run list", "--limit 0", "--limit: must be a whole number, 1 at least"],
  ["run results", "", "name a run"],
  ["run cancel", "run_1 run_2", "a run, not run_1, run_2"],
  ["run watch", "--json", "name one run or more"],
  ["run update", "run_1", "name what is to change"],
  ["run update", "run_1 -c 0", "--max-concurrent: must be a whole number, 1 at least"],
  ["run retry", "run_1 --class provider --class luck", "--class: luck is not one of provider"],
  ["run pause", "", "name a run"],
  ["run audit", "a b", "a run, not a, b"],
  ["rollout fork", "ro_1", "--turn: say behind which turn, the first is 0"],
  ["rollout fork", "ro_1 --turn 1 -S no", "--sampling-args: it is not a JSON object"],
  ["dataset push", "no-such-file", "no-such-file: there is no such file"],
  ["dataset push", ".", ".: is a folder"],
  ["dataset push", "- -a max=1", "add --environment"],
  ["dataset show", "d -n 1001", "--num-rows: at most 1000"],
  ["endpoint add", "x", "--base-url: say where it is with -b URL"],
  ["endpoint add", "x -b nowhere", "--base-url: nowhere is not a URL"],
  ["endpoint add", "x -b http://h/v1 -k NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"],
  ["endpoint add", "x -b http://h/v1 --input-price 1", "--output-price: prices come in pairs"],
  ["endpoint update", "x", "name what is to change"],
  ["endpoint update", "x --rpm 5 --no-rpm", "--no-rpm: not beside --rpm"],
  ["secret set", "X --from-env NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"],
  ["login", "", "--platform: say where the platform is"],
  ["login", "--platform nowhere", "--platform: nowhere is not an http or https URL"],
  ["login", "--profile local", "needs no login"],
  ["logout", "--profile nobody", "no profile is called nobody"],
  ["org update", "", "name what is to change"],
  ["org update", "--any-host --allow-host h", "--any-host: not beside --allow-host"],
  ["run delete", "run_1", "--yes: there is no terminal to ask on"],
  ["project delete", "art", "--confirm: say the project once more: --confirm art"],
  ["project delete", "art --confirm math", "--confirm: math is not art"],
  ["org delete", "", "--confirm: say the organisation's name"],
  ["org limits", "org_1 --storage-bytes some", "--storage-bytes: some is not a number"],
  ["project create", "", "name the project"],
  ["project update", "p --runs-days 0", "--runs-days: must be a whole number, 1 at least"],
  ["key create", "k", "--scope: say what it may do"],
  ["key create", "k --scope all", "--scope: all is not one of runs:read"],
  ["key create", "k --scope trainer --expires-in soon", "--expires-in: soon is no time such as 90d"],
  ["key create", "k --scope trainer --project p --organization", "--organization: not beside --project"],
  ["key rotate", "key_1 --overlap 5", "--overlap: 5 is no time"],
  ["key update", "key_1 --rpm 5 --no-rpm", "--no-rpm: not beside --rpm"],
  ["person role", "ann@example.com boss", "a role: owner, developer, viewer"],
  ["invitation create", "ann@example.com", "--role: say what they may do"],
  ["invitation accept", "--platform http://h", "give it on stdin with --token-stdin"],
  ["audit-log", "--limit 0", "--limit: must be a whole number, 1 at least"],
  ["run list", "--profile nobody", "Log in: rollcall login --profile nobody"],
  ["start", "--port 6000", "--port: browsers and fetch refuse to connect to port 6000"],
  ["start", "--environment gsm8k", "calculator, guess-number, grid-walk, reverse-text"],
  ["train", "a b", "one environment, not a, b"],
  ["train", "calculator -m m -b http://h/v1", "name a trainer of yours: pull or push:URL"],
  ["train", "calculator -m m --fleet gpus", "name a trainer of yours: pull or push:URL"],
  [
    "train",
    "gsm8k -m m --trainer pull -b http://h/v1 --initial-weights /w",
    "--initial-weights: of the engines of a fleet",
  ],
  ["train", "calculator --trainer mail", "mail is not embedded, pull or push:URL"],
  ["train", "calculator --trainer push:nowhere", "push:nowhere is not embedded"],
  ["train", "calculator --learning-rate -1", "--learning-rate: must be 0 or more"],
  ["train", "calculator --passes 17", "--passes: at most 16"],
  ["train", "calculator --max-steps 0", "--max-steps: must be a whole number, 1 at least"],
  ["completion", "powershell", "there are bash, zsh and fish"],
];

/** Called as in the title: `runListCommand`. */
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

test("a judge that nobody answers for is asked for by its flag", () => {
  const message = "judged-qa needs the judge default";
  const type = "invalid_request_error";
  const refused = { code: "missing_judge", message, param: "judges.default", type } as const;
  const error = new ApiRequestError(400, refused, { requestId: null, retryAfterMs: null });
  expect(asCommandError(error)).toMatchObject({
    exit: EXIT.usage,
    message: `${message}, or --judge NAME=MODEL@ENDPOINT`,
  });
});

test("what a refusal says for programs is kept: what is missing, and of which budget", () => {
  const details = { shortfall_micros: 6400, budget_id: "bud_1" };
  const refused = { code: "budget_exhausted", message: "no", param: null, type: "billing_error", ...details } as const;
  const error = new ApiRequestError(402, refused, { requestId: null, retryAfterMs: null });
  expect(asCommandError(error).failure).toEqual(refused);
});
