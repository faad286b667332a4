/** The report of an account test, as JSON and as Markdown. */
import type { Verdict } from "./questions.ts";

export interface Answered {
  readonly id: string;
  readonly asks: string;
  readonly assumes: string;
  readonly verdict: Verdict;
  readonly says: string;
  readonly raw: unknown;
}

export interface Report {
  readonly name: string;
  /** local: the Workers ran on this machine, so no answer is about Cloudflare. */
  readonly target: "account" | "local";
  readonly account_id: string;
  readonly release: string;
  readonly compatibility_date: string;
  readonly peer: string;
  readonly started_at: string;
  readonly minutes: number;
  readonly sizes: object;
  readonly answers: readonly Answered[];
  /** Null: everything was kept. */
  readonly left: readonly string[] | null;
  /** Why the test ended early; null if it did not. */
  readonly ended: string | null;
}

const MEANINGS: Readonly<Record<Verdict, string>> = {
  agrees: "measured as the platform assumes",
  stricter: "the platform assumes less than was measured: it is safe, and could do more",
  differs: "**measured otherwise than the platform assumes**",
  undecided: "this measurement does not tell",
};

export function reportText(report: Report): string {
  const { answers, left } = report;
  const lines = [
    `# Account test ${report.name}`,
    "",
    report.target === "local"
      ? "**Local: the Workers ran in workerd on this machine. Nothing here is an answer about Cloudflare.**"
      : `Account ${report.account_id}.`,
    "",
    `Begun ${report.started_at}, ${report.minutes} minutes. Rollcall ${report.release}, compatibility date ${report.compatibility_date}.`,
    `Silent and streaming server: ${report.peer}.`,
    ...(report.ended === null
      ? []
      : ["", `**Ended early: ${report.ended}.** Questions that were not measured are missing.`]),
    "",
    "| question | verdict |",
    "|---|---|",
    ...answers.map(({ id, verdict }) => `| [${id}](#${id}) | ${verdict} |`),
    "",
    ...Object.entries(MEANINGS).map(([verdict, meaning]) => `- ${verdict}: ${meaning}.`),
    "",
    ...answers.flatMap(answerLines),
    "## What is left at Cloudflare",
    "",
    ...(left === null ? ["Everything was kept."] : left.length === 0 ? ["Nothing."] : left.map((what) => `- ${what}`)),
    "",
  ];
  return lines.join("\n");
}

function answerLines({ id, asks, assumes, verdict, says, raw }: Answered): string[] {
  return [
    ...[`## ${id}`, "", asks, ""],
    ...[`- The platform assumes: ${assumes}`, `- Measured: ${says}`, `- Verdict: ${verdict}`, ""],
    ...["```json", JSON.stringify(raw), "```", ""],
  ];
}
