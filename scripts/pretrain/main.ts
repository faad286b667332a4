/**
 * `npm run pretrain`: makes packages/policy/base-weights.bin from this repository alone, with the trainer's model.
 *
 * Invariants: seeded everywhere and counted in steps, never in seconds: the same steps and examples give the same file
 * on every machine. The policy is trained on what it gets over HTTP: the demo's environments, the chat template; its
 * own engine does the measurements.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { BASE_WEIGHTS_FILE, bytesFromWeights } from "@rollcall/policy/weights";
import { startJax } from "@rollcall/trainer/gradient";
import { seededRandom } from "../../src/contract/random.ts";
import { demonstrate, type Example } from "./demonstrations.ts";
import { Imitation } from "./imitate.ts";
import { type Level, measure } from "./measure.ts";
import { loadFields } from "./playing-field.ts";

const HELP = `Usage: npm run pretrain -- [flags]

Makes the policy's base weights; 15 to 25 minutes of one core. Progress goes to stderr, the levels reached to stdout.

      --steps N       of training; default 5000
      --examples N    demonstrations of each environment; default 20000
      --measure N     rollouts of each measurement; default 512
      --out FILE      default packages/policy/base-weights.bin
      --json          print the levels as JSON
`;

const EXAMPLES_PER_STEP = 48;
const REPORT_EVERY = 250;
const MEASURE_EVERY = 1000;
const MEASURED_ON_THE_WAY = 128;

interface Plan {
  readonly steps: number;
  readonly examples: number;
  readonly measured: number;
}

/** Trains, and writes the weights to `file`. */
async function pretrain({ steps, examples, measured }: Plan, file: string): Promise<Level[]> {
  const fields = await loadFields();
  const lessons: Example[][] = [];
  for (const field of fields) {
    lessons.push(await demonstrate(field, examples));
    console.error(`${field.id}: ${examples} demonstrations`);
  }
  await startJax();
  const imitation = new Imitation(steps, seededRandom("initialize", 1));
  const random = seededRandom("lessons", 1);
  let losses = 0;
  for (let step = 1; step <= steps; step += 1) {
    losses += await imitation.step(drawExamples(lessons, random));
    if (step % REPORT_EVERY === 0) {
      console.error(`step ${step} of ${steps}, loss ${(losses / REPORT_EVERY).toFixed(4)}`);
      losses = 0;
    }
    if (step % MEASURE_EVERY === 0) {
      console.error(tableOf(await measure(fields, imitation.weights, MEASURED_ON_THE_WAY)));
    }
  }
  writeFileSync(file, bytesFromWeights(imitation.weights));
  return measure(fields, imitation.weights, measured);
}

/** Picks an environment at random, then one of its demonstrations. */
function drawExamples(lessons: readonly (readonly Example[])[], random: () => number): Example[] {
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)];
  return Array.from({ length: EXAMPLES_PER_STEP }, () => pick(pick(lessons) ?? [])).filter(
    (example) => example !== undefined,
  );
}

function tableOf(levels: readonly Level[]): string {
  return levels
    .map(({ environment, temperature, examples, reward, scores }) => {
      const kind = temperature === 0 ? "greedy " : "sampled";
      const parts = Object.entries(scores).map(([name, score]) => `${name} ${score.toFixed(3)}`);
      const head = `${environment.padEnd(13)} ${kind} n=${examples} reward ${reward.toFixed(3)}`;
      return `${head}  ${parts.join(" ")}`;
    })
    .join("\n");
}

function count(flag: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  console.error(`--${flag} is ${text}: give a whole number of at least 1`);
  process.exit(2);
}

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "5000" },
    examples: { type: "string", default: "20000" },
    measure: { type: "string", default: "512" },
    out: { type: "string", default: BASE_WEIGHTS_FILE },
    json: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) {
  console.log(HELP);
} else {
  const steps = count("steps", values.steps);
  const examples = count("examples", values.examples);
  const measured = count("measure", values.measure);
  const levels = await pretrain({ steps, examples, measured }, values.out);
  console.log(values.json ? JSON.stringify(levels, null, 2) : tableOf(levels));
}
