/** What is wrong with a command line is said before a platform is looked for, let alone booted. */
import { expect, test } from "vitest";
import { completionCommand } from "../../src/cli/commands/completion.ts";
import { datasetShowCommand } from "../../src/cli/commands/dataset.ts";
import { datasetPushCommand } from "../../src/cli/commands/dataset-push.ts";
import { endpointAddCommand, endpointUpdateCommand } from "../../src/cli/commands/endpoint-write.ts";
import { rolloutForkCommand } from "../../src/cli/commands/rollout-control.ts";
import { runAuditCommand } from "../../src/cli/commands/run-audit.ts";
import { runPauseCommand, runRetryCommand, runUpdateCommand } from "../../src/cli/commands/run-control.ts";
import { runListCommand } from "../../src/cli/commands/run-list.ts";
import { runResultsCommand } from "../../src/cli/commands/run-results.ts";
import { runCancelCommand } from "../../src/cli/commands/run-show.ts";
import { runWatchCommand } from "../../src/cli/commands/run-watch.ts";
import { secretSetCommand } from "../../src/cli/commands/secret.ts";
import { startCommand } from "../../src/cli/commands/start.ts";
import { asCommandError, EXIT } from "../../src/cli/exit.ts";
import { trainCommand } from "../../src/cli/train/train.ts";
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

test.each([
  [runListCommand, "--status odd", "--status: odd is not one of queued, running"],
  [runListCommand, "run_1", "no argument is taken here"],
  [runListCommand, "--limit 0", "--limit: must be a whole number, 1 at least"],
  [runResultsCommand, "", "name a run"],
  [runCancelCommand, "run_1 run_2", "a run, not run_1, run_2"],
  [runWatchCommand, "--json", "name one run or more"],
  [runUpdateCommand, "run_1", "name what is to change"],
  [runUpdateCommand, "run_1 -c 0", "--max-concurrent: must be a whole number, 1 at least"],
  [runRetryCommand, "run_1 --class provider --class luck", "--class: luck is not one of provider"],
  [runPauseCommand, "", "name a run"],
  [runAuditCommand, "a b", "a run, not a, b"],
  [rolloutForkCommand, "ro_1", "--turn: say behind which turn, the first is 0"],
  [rolloutForkCommand, "ro_1 --turn 1 -S no", "--sampling-args: it is not a JSON object"],
  [datasetPushCommand, "no-such-file", "no-such-file: there is no such file"],
  [datasetPushCommand, ".", ".: is a folder"],
  [datasetPushCommand, "- -a max=1", "add --environment"],
  [datasetShowCommand, "d -n 1001", "--num-rows: at most 1000"],
  [endpointAddCommand, "x", "--base-url: say where it is with -b URL"],
  [endpointAddCommand, "x -b nowhere", "--base-url: nowhere is not a URL"],
  [endpointAddCommand, "x -b http://h/v1 -k NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"],
  [endpointAddCommand, "x -b http://h/v1 --input-price 1", "--output-price: prices come in pairs"],
  [endpointUpdateCommand, "x", "name what is to change"],
  [endpointUpdateCommand, "x --rpm 5 --no-rpm", "--no-rpm: not beside --rpm"],
  [secretSetCommand, "X --from-env NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"],
  [startCommand, "--port 6000", "--port: browsers and fetch refuse to connect to port 6000"],
  [startCommand, "--environment gsm8k", "calculator, guess-number, grid-walk, reverse-text"],
  [trainCommand, "a b", "one environment, not a, b"],
  [trainCommand, "calculator -m m -b http://h/v1", "name a trainer of yours: pull or push:URL"],
  [trainCommand, "calculator --trainer mail", "mail is not embedded, pull or push:URL"],
  [trainCommand, "calculator --trainer push:nowhere", "push:nowhere is not embedded"],
  [trainCommand, "calculator --learning-rate -1", "--learning-rate: must be 0 or more"],
  [trainCommand, "calculator --passes 17", "--passes: at most 16"],
  [trainCommand, "calculator --max-steps 0", "--max-steps: must be a whole number, 1 at least"],
  [completionCommand, "powershell", "there are bash, zsh and fish"],
])("%o %s is refused as wrong usage", async (command, argv, message) => {
  const words = argv.split(" ").filter((word) => word !== "");
  expect(await refusal(async () => command(words))).toContain(message);
});

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
