/** `rollcall train`: evaluates a policy, trains it, evaluates it again, and says how it went. */
import { type Connection, connect } from "../connect.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { catchInterrupts, firstOf } from "../interrupt.ts";
import { printJson, type Terminal, terminal } from "../terminal/terminal.ts";
import { parseTrainArguments, type TrainArguments, trainingDefaults } from "./arguments.ts";
import { begunTraining, embeddedTrainer, learningOf, refuseSecondTraining, resumedTraining } from "./begin.ts";
import { playTraining, type TrainingEnds, type TrainingOutcome } from "./play.ts";
import { plannedTraining, type TrainingWish } from "./request.ts";

import { trainingText, trainSummary } from "./summary.ts";

export async function trainCommand(argv: readonly string[]): Promise<ExitCode> {
  const args = parseTrainArguments(argv);
  const term = terminal(args.json);
  using interrupt = catchInterrupts();
  const timeout = args.timeoutMs === null ? null : AbortSignal.timeout(args.timeoutMs);
  const connection = await connect({
    ...args,
    environment: args.draft.environment,
    signal: firstOf(interrupt.signal, timeout),
    // A terminal interrupts workerd, too, and what is said of its coming back would only confuse.
    say: (line) => {
      if (!interrupt.signal.aborted) term.say(line);
    },
  });
  try {
    const ends = { interrupt: interrupt.signal, timeout };
    const outcome = await played(args, connection, term, ends);
    term.print(trainingText(outcome, term));
    if (args.json) printJson(trainSummary(outcome));
    return outcome.run.status === "completed" ? EXIT.good : EXIT.bad;
  } finally {
    await connection.close();
  }
}

function played(
  args: TrainArguments,
  connection: Connection,
  term: Terminal,
  ends: TrainingEnds,
): Promise<TrainingOutcome> {
  return args.resume === null
    ? freshTraining(args, connection, term, ends)
    : againTraining(args.resume, args, connection, term, ends);
}

export async function freshTraining(
  wish: TrainingWish,
  connection: Connection,
  term: Terminal,
  ends: TrainingEnds,
): Promise<TrainingOutcome> {
  const { trainer } = wish;
  const { client, policyUrl } = connection;
  const plan = await plannedTraining(wish, connection, term, ends.interrupt);
  if (trainer.kind !== "embedded" || policyUrl === null) {
    const begin = begunTraining.bind(null, plan, null);
    return await playTraining({ connection, term, trainer, ends, process: null, begin });
  }
  await refuseSecondTraining(client, policyUrl);
  const usual = trainingDefaults(plan.training.environment.split("@")[0] ?? "");
  const learning = {
    learningRate: wish.learning.learningRate ?? usual.learning_rate,
    passes: wish.learning.passes ?? usual.passes,
    loss: wish.learning.loss ?? usual.loss,
    seed: plan.training.seed ?? 0,
  };
  const process = embeddedTrainer({ connection, term }, policyUrl, learning);
  const begin = begunTraining.bind(null, plan, learning);
  return await playTraining({ connection, term, trainer, ends, process, begin });
}

/** The run as it was begun, by a trainer that goes on from its checkpoint. */
export async function againTraining(
  runId: string,
  { trainer }: Pick<TrainingWish, "trainer">,
  connection: Connection,
  term: Terminal,
  ends: TrainingEnds,
): Promise<TrainingOutcome> {
  const { client, policyUrl } = connection;
  const begin = resumedTraining.bind(null, runId);
  if (trainer.kind !== "embedded") {
    return await playTraining({ connection, term, trainer, ends, process: null, begin });
  }
  if (policyUrl === null) {
    throw usageError("--resume: its trainer is not here: name it with --trainer", "resume");
  }
  const learning = learningOf(await client.getRun(runId, { signal: ends.interrupt }));
  const process = embeddedTrainer({ connection, term }, policyUrl, learning);
  return await playTraining({ connection, term, trainer, ends, process, begin });
}
