/** `rollcall train`: evaluates a policy, trains it, evaluates it again, and reports the result. */
import type { CommandLine } from "../command-line.ts";
import { EXIT, type ExitCode, usageError } from "../exit.ts";
import { withConnection } from "../on-platform.ts";
import type { TRAIN_FLAGS } from "../run-flags.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { trackerOf } from "../tracker.ts";
import { type TrainingSettings, trainArguments, trainingDefaults } from "./arguments.ts";
import { beginTraining, embeddedTrainer, learningOf, refuseSecondTraining, resumeTraining } from "./begin.ts";
import { playTraining, type Training, type TrainingOutcome } from "./play.ts";
import { planTraining } from "./request.ts";
import { trainingText, trainSummary } from "./summary.ts";

export async function trainCommand(line: CommandLine<keyof typeof TRAIN_FLAGS>): Promise<ExitCode> {
  const args = trainArguments(line);
  const term = terminal(args.json);
  const tracker = await trackerOf(line);
  return await withConnection(args.connect, term.log, async (connection, ends) => {
    const training = { connection, term, ends, trainer: args.trainer, tracker, again: args.again };
    const outcome =
      args.resume === null ? await newTraining(args, training) : await continueTraining(args.resume, training);
    term.print(trainingText(outcome, term));
    if (args.json) printJson(trainSummary(outcome));
    return outcome.run.status === "completed" ? EXIT.good : EXIT.bad;
  });
}

export async function newTraining(settings: TrainingSettings, training: Training): Promise<TrainingOutcome> {
  const { connection, term, ends, trainer } = training;
  const { client, policyUrl } = connection;
  const plan = await planTraining(settings, connection, term, ends.interrupt);
  if (trainer.kind !== "embedded" || policyUrl === null) {
    return await playTraining(training, null, (context) => beginTraining(plan, null, context));
  }
  await refuseSecondTraining(client, policyUrl);
  const usual = trainingDefaults(plan.training.environment.split("@")[0] ?? "");
  const learning = {
    learningRate: settings.learning.learningRate ?? usual.learning_rate,
    passes: settings.learning.passes ?? usual.passes,
    loss: settings.learning.loss ?? usual.loss,
    seed: plan.training.seed ?? 0,
  };
  const process = embeddedTrainer(training, policyUrl, learning);
  return await playTraining(training, process, (context) => beginTraining(plan, learning, context));
}

/** Continues the run as it was begun; the trainer resumes from its checkpoint. */
export async function continueTraining(runId: string, training: Training): Promise<TrainingOutcome> {
  const { connection, ends, trainer } = training;
  const { client, policyUrl } = connection;
  const begin = resumeTraining.bind(null, runId);
  if (trainer.kind !== "embedded") return await playTraining(training, null, begin);
  if (policyUrl === null) {
    throw usageError("--resume: its trainer is not local: set --trainer", "resume");
  }
  const learning = learningOf(await client.runs.get(runId, { signal: ends.interrupt }));
  return await playTraining(training, embeddedTrainer(training, policyUrl, learning), begin);
}
