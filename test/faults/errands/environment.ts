/**
 * Tools with effects outside the rollout: each run is reported, with its idempotency key, to a server that counts them.
 * `look_up` may run again, `book` must not. Scored by whole groups, and optionally by a judge.
 */
import { type Capabilities, dataset, defineEnvironment, inject, JudgeRubric, StatefulToolEnv, tool } from "rollcall";
import * as z from "zod";

const Task = z.object({ question: z.string() });
const PLACES = ["harbour", "library", "market", "museum", "station", "theatre"] as const;
type Errands = { done: number };
type Visit = (key: string) => Promise<string>;
const visit = inject<Visit>();
const errands = inject<Errands>();

const lookUp = tool({
  name: "look_up",
  description: "Look a place up.",
  parameters: z.object({ place: z.enum(PLACES) }),
  hidden: { visit, errands },
  run: async ({ place, visit: report, errands: state }, call) => {
    await report(`look_up/${call.idempotencyKey}`);
    state.done += 1;
    return `${place}: open`;
  },
});

const book = tool({
  name: "book",
  description: "Book a place for good.",
  parameters: z.object({ place: z.enum(PLACES) }),
  hidden: { visit, errands },
  idempotent: false,
  run: async ({ place, visit: report, errands: state }, call) => {
    await report(`book/${call.idempotencyKey}`);
    state.done += 10;
    return `${place}: booked`;
  },
});

export const loadEnvironment = defineEnvironment({
  args: z.strictObject({ desk: z.url(), judged: z.boolean().default(false) }),
  needs: ["fetch"],
  build: ({ desk, judged }) =>
    new StatefulToolEnv({
      dataset: dataset(Task, (index, random) => ({
        question: `Errand ${index}: run ${1 + Math.floor(random() * 1000)} errands.`,
      })),
      setupState: () => ({ done: 0 }),
      openLive: (_state, can) => reporter(desk, can),
      tools: [lookUp, book],
      maxTurns: 6,
      updateToolArgs: (_name, args, _messages, state) => ({
        ...args,
        visit: state.live,
        errands: state,
      }),
      rubric: [
        {
          groupRewards: { done: (group) => group.map(({ state }) => state.done) },
          metrics: { said: ({ completion }) => completion.length },
        },
        ...(judged ? [manner] : []),
      ],
    }),
});

const manner = new JudgeRubric<z.infer<typeof Task>, Errands>({
  name: "manner",
  prompt: "Errands: {question}\nReport:\n{response}\nHow well is it reported?",
  choices: { poorly: 0, fairly: 1, well: 2 },
});

/** Throws if the server does not count the visit: a tool that cannot report its run must not appear to have run. */
function reporter(desk: string, can: Capabilities): Visit {
  return async (key) => {
    const { status } = await can.fetch(`${desk}/${key}`, { method: "POST" });
    if (status !== 204) throw new Error(`the desk answers ${status}`);
    return key;
  };
}
