/** Scores a rollout that was played in this process, with judges that are functions too. */
import { RolloutError } from "../../contract/errors.ts";
import { textOf } from "../../contract/messages.ts";
import type { Trajectory } from "../../contract/trajectory.ts";
import { scoreJudged } from "../rubrics/judged-score.ts";
import type { JudgeAsk, Verdict } from "../rubrics/judges.ts";
import { type Scorable, type ScoreRecord, type ScoringOffer, scoreUnit } from "../rubrics/score.ts";
import { readVerdict } from "../rubrics/verdict.ts";
import type { Reply, TestModel } from "./test-model.ts";

/** One for the judge `default`, or one for each name. */
export type TestJudges = TestModel | Readonly<Record<string, TestModel>>;

/** Throws what a judge throws, unless that is an error of the library: then there is no verdict. */
export async function scorePlayed(
  environment: Scorable,
  trajectory: Trajectory,
  judges: TestJudges | undefined,
  offer: Omit<ScoringOffer, "judges"> = {},
): Promise<ScoreRecord | undefined> {
  if (judges === undefined) return (await scoreUnit(environment, [trajectory], offer))[0];
  const models = typeof judges === "function" ? { default: judges } : judges;
  const ask = async (owed: readonly JudgeAsk[]) => {
    const given = new Map<string, Verdict>();
    for (const one of owed) given.set(one.key, await verdictOf(models[one.judge], one));
    return given;
  };
  const court = { known: new Map(), named: Object.keys(models), hash: (text: string) => text, ask };
  const scored = await scoreJudged(court, 1, (bench) =>
    scoreUnit(environment, [trajectory], { ...offer, judges: bench }),
  );
  return scored.kind === "scored" ? scored.records[0] : undefined;
}

async function verdictOf(model: TestModel | undefined, ask: JudgeAsk): Promise<Verdict> {
  if (model === undefined) throw new Error(`no judge ${ask.judge} is scripted`);
  try {
    const reply = await model({ messages: ask.messages, tools: [], turn: 0 });
    const read = readVerdict(ask.menu, textOfReply(reply));
    return read.ok ? read : { value: null, error: read.error, retryable: true };
  } catch (thrown) {
    if (!(thrown instanceof RolloutError)) throw thrown;
    return { value: null, error: thrown.message, retryable: thrown.retryable };
  }
}

function textOfReply(reply: Reply): string {
  return typeof reply === "string" ? reply : textOf({ content: reply.content ?? null });
}
