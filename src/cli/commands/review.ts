/** `rollcall rollout review`, `rollcall run reviews | agreement`: what people think of rollouts, and of their judges. */
import { type AgreementItem, MARKS, type RunAgreement } from "../../contract/agreement.ts";
import { LIMITS } from "../../contract/limits.ts";
import { COMMAND } from "../../local/package-root.ts";
import type { ReviewRequestInput, ReviewView } from "../../sdk/client.ts";
import { defined } from "../argument-values.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import { usageError } from "../exit.ts";
import { gather, onPlatform, question } from "../on-platform.ts";
import { countText, timeText } from "../terminal/format.ts";
import { listText } from "../terminal/table.ts";

const SHOWN = 20;
/** Rollouts of one score or judge that the table names. */
const NAMED = 2;

const GIVEN_FLAGS = {
  mark: { value: "MARK", choices: MARKS, help: "the rollout as a whole" },
  note: { value: "TEXT", help: "what you saw" },
  reward: { value: "N", help: "the reward that it should have" },
  score: { value: "NAME=N", repeatable: true, help: "the score of that name that it should have" },
  judge: { value: "NAME=VERDICT", repeatable: true, help: "the label or number that this judge should have given" },
  why: { value: "TEXT", help: "why; required if a value differs from the rollout's own" },
} as const;

const REVIEW = command({
  name: "rollout review",
  takes: "<rollout>",
  help: "write your review of an ended rollout: a mark, a note, other scores",
  more: "It replaces your earlier review of the rollout. The rollout and its scores never change.",
  flags: {
    ...GIVEN_FLAGS,
    list: { help: "list the rollout's reviews instead of writing one" },
    delete: { help: "delete your review instead of writing one" },
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a rollout");
    const review = reviewIn(line);
    const isEmpty = Object.keys(review).length === 0;
    if (line.on("list") && line.on("delete")) throw usageError("--delete: cannot be combined with --list", "delete");
    if (line.on("list") || line.on("delete")) {
      if (!isEmpty) throw usageError("--list and --delete take no part of a review");
      return onPlatform(line, async ({ client, signal, term: { room } }) => {
        if (line.on("delete")) {
          return { json: await client.reviews.delete(id, { signal }), text: () => `your review of ${id} is deleted` };
        }
        const page = await client.reviews.list(id, { limit: LIMITS.reviewsPerRollout }, { signal });
        return { json: page, text: () => reviewsText(page.data, room) };
      });
    }
    if (isEmpty) throw usageError("--mark: set a mark, a note or a value", "mark");
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const written = await client.reviews.put(id, review, { signal });
      return { json: written, text: () => reviewsText([written], room) };
    });
  },
});

/** Only what the flags give. */
function reviewIn(line: CommandLine<keyof typeof GIVEN_FLAGS>): ReviewRequestInput {
  const scores = Object.entries(line.pairs("score")).map(([name, text]): [string, number] => {
    const value = numberIn(text);
    if (value === null) throw usageError(`--score: ${name}: ${text} is not a number`, "score");
    return [name, value];
  });
  const judges = Object.entries(line.pairs("judge")).map(([name, text]): [string, number | string] => {
    return [name, numberIn(text) ?? text];
  });
  return defined({
    mark: MARKS.find((mark) => mark === line.text("mark")),
    note: line.text("note"),
    reward: line.number("reward"),
    scores: scores.length === 0 ? undefined : Object.fromEntries(scores),
    judges: judges.length === 0 ? undefined : Object.fromEntries(judges),
    why: line.text("why"),
  });
}

function numberIn(text: string): number | null {
  const number = Number(text);
  return text.trim() === "" || !Number.isFinite(number) ? null : number;
}

function reviewsText(reviews: readonly ReviewView[], room: number): string {
  return listText(reviews, {
    header: ["rollout", "by", "mark", "values", "why", "note", "changed"],
    rowOf: ({ rollout_id, created_by, mark, values, why, note, updated_at }) => [
      ...[rollout_id, created_by, mark ?? "", valuesText(values), why ?? "", note ?? "", timeText(updated_at)],
    ],
    none: "No reviews.",
    room,
    widest: { why: 40, note: 40 },
  });
}

function valuesText(values: ReviewView["values"]): string {
  return values.map(({ name, value, given }) => `${name} ${given ?? "–"} → ${value}`).join(", ");
}

const REVIEWS = command({
  name: "run reviews",
  takes: "<run>",
  reads: true,
  help: "list the reviews of a run's rollouts",
  flags: { limit: { value: "N", help: `maximum number; default ${SHOWN}` }, ...PLATFORM_FLAGS },
  run(line) {
    const id = line.one("a run");
    const limit = line.count("limit", 1) ?? SHOWN;
    return onPlatform(line, async ({ client, signal, term: { room } }) => {
      const page = await gather(client.reviews.listOfRun(id, { limit: Math.min(limit, 100) }, { signal }), limit);
      return { json: page, text: () => reviewsText(page.data, room) };
    });
  },
});

const AGREEMENT = question({
  name: "run agreement",
  takes: "<run>",
  reads: true,
  help: "compare a run's scores and judges with the people who reviewed it",
  more: "κ is 1 if they always agree, and 0 if they agree as often as by chance. The worst comes first.",
  what: "a run",
  ask: (client, id, options) => client.runs.agreement(id, options),
  text: (agreement, { room }) => agreementText(agreement, room),
});

function agreementText({ reviews, rollouts, items }: RunAgreement, room: number): string {
  const reviewed = items.filter(({ n, people }) => n > 0 || people.pairs > 0);
  const table = listText(reviewed, {
    header: ["score or judge", "κ", "95 %", "agree", "rollouts", "people agree", "differ, for example"],
    rowOf: (item) => [
      item.of === "reward" ? "the reward" : `${item.of} ${item.name}`,
      item.kappa?.toFixed(3) ?? WHY_NONE[item.reason ?? "too_few"],
      item.ci95 === null ? "–" : item.ci95.map((end) => end.toFixed(3)).join(" to "),
      shareText(item.agreement),
      countText(item.n),
      shareText(item.people.agreement),
      exampleText(item.disagreements),
    ],
    none: `No score, judge or reward has a value that a person gave: ${COMMAND} rollout review`,
    room,
  });
  return `${table}\n${countText(reviews)} reviews of ${countText(rollouts)} rollouts`;
}

const WHY_NONE = { too_few: "too few", one_value: "one value only", too_large: "too large" };

function exampleText(disagreements: AgreementItem["disagreements"]): string {
  const shown = disagreements.slice(0, NAMED).map(({ rollout_id }) => rollout_id);
  return shown.length === 0 ? "–" : shown.join(", ");
}

function shareText(share: number | null): string {
  return share === null ? "–" : `${(share * 100).toFixed(1)} %`;
}

export const REVIEW_COMMANDS = [REVIEW, REVIEWS, AGREEMENT] as const;
