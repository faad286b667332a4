/** What the trainer is started with. The token and the secret never stand among the flags, where other processes see them. */
import { parseArgs } from "node:util";
import * as z from "zod";
import { LOSS_NAMES, type LossName } from "./losses.ts";
import { MOST_PASSES } from "./trainer-process.ts";

export const HELP = `Usage: node packages/trainer/main.ts --url URL --policy URL [flags]

Trains the embedded policy on the batches of one run, by the contract in docs/training.md. Which run: --run with its
token in ROLLCALL_TRAINER_TOKEN; or, without --run, one line of JSON on stdin, {"run_id","token","checkpoint"}, and the end
of stdin stops it. Events are lines of JSON on stdout. Interrupted, it ends the step it is in; started again with the same
checkpoint, it goes on.

      --url URL             of the platform, without /v1
      --policy URL          of an engine that serves the policy; may be repeated
      --run ID              the run to train
      --checkpoint DIR      where weights are kept, and taken from
      --delivery pull|push  default pull; push needs the secret in ROLLCALL_PUSH_SECRET
      --port N              that offers are pushed to; default 8790
      --learning-rate L     default 5e-4; 0 changes nothing, as a control
      --passes N            how often each batch is trained on, 1 to ${MOST_PASSES}; default 1
      --loss NAME           ${LOSS_NAMES.join(", ")}; default dppo
      --seed S              of the order in which samples are taken; default 0
      --rewind              gives up every version after the checkpoint's
`;

const Rate = z.coerce.number().min(0).max(1);
const Flags = z.object({
  url: z.url(),
  policy: z.array(z.url()).min(1),
  run: z.string().min(1).optional(),
  checkpoint: z.string().min(1).optional(),
  delivery: z.enum(["pull", "push"]).default("pull"),
  port: z.coerce.number().int().min(1).max(65_535).default(8790),
  "learning-rate": Rate.default(5e-4),
  passes: z.coerce.number().int().min(1).max(MOST_PASSES).default(1),
  loss: z.custom<LossName>((name) => LOSS_NAMES.some((known) => known === name)).default("dppo"),
  seed: z.coerce.number().int().min(0).default(0),
  rewind: z.boolean().default(false),
});
export type Settings = z.output<typeof Flags>;

/** Which run to train. */
export const Task = z.object({
  run_id: z.string().min(1),
  token: z.string().min(1),
  checkpoint: z.string().min(1),
  push_secret: z.string().min(1).optional(),
});
export type Task = z.infer<typeof Task>;

/** Null when help was asked for. Throws an Error whose message says which flag is wrong. */
export function readSettings(argv: readonly string[]): Settings | null {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: {
      url: text,
      policy: { type: "string", multiple: true },
      run: text,
      checkpoint: text,
      delivery: text,
      port: text,
      "learning-rate": text,
      passes: text,
      loss: text,
      seed: text,
      rewind: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return null;
  const read = Flags.safeParse(values);
  if (read.success) return read.data;
  const [first] = read.error.issues;
  throw new Error(`--${first?.path.join(".")}: ${first?.message}; --help tells more`);
}
