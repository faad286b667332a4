/**
 * `rollcall run results | export`: writes the rollouts of a run as rows, or as rows for training, to stdout or a file.
 */
import { EXPORT_FORMATS, type ExportFormat, LEFT_OUT } from "../../contract/export.ts";
import { fillReportFile } from "../../contract/report-file.ts";
import { OUTCOMES } from "../../contract/run.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import type { ExportRunQuery, LeftOutNote } from "../../sdk/client.ts";
import { type CommandLine, command, PLATFORM_FLAGS } from "../command-line.ts";
import type { ExitCode } from "../exit.ts";
import { printLines, writeLines, writeText } from "../json-lines.ts";
import { onPlatform } from "../on-platform.ts";
import { EXPORT_FLAGS } from "../run-flags.ts";
import { countText } from "../terminal/format.ts";

const OUTPUT_FLAG = { output: { short: "o", value: "FILE", help: "write to this file instead of stdout" } } as const;

const RESULTS = command({
  name: "run results",
  takes: "<run>",
  reads: true,
  help: "print the finished rollouts of a run, one JSON object per line",
  flags: {
    outcome: { value: "OUTCOME", choices: OUTCOMES, help: "only these" },
    ...OUTPUT_FLAG,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a run");
    const outcome = OUTCOMES.find((name) => name === line.text("outcome"));
    const file = line.text("output");
    return onPlatform(line, async ({ client, signal }) => {
      // Read first, so that an unknown run leaves no empty file behind.
      const run = await client.runs.get(id, { signal });
      const rows = client.runs.results(run.id, { outcome }, { signal });
      if (file === undefined) {
        await printLines(rows, line.on("json"));
        return {};
      }
      const written = await writeLines(rows, file, "output");
      const json = { object: "results", run_id: run.id, rows: written, file };
      return { json, text: () => `${countText(written)} rollouts in ${file}` };
    });
  },
});

const EXPORT = command({
  name: "run export",
  takes: "<run>",
  reads: true,
  help: "export a run's rollouts as training rows, one JSON object per line",
  more: `With --html it is the run's report instead: one HTML file that opens from disk with the network off, and shows
the numbers of the run's page. It is written to <run>.html, or where -o says.`,
  flags: {
    ...EXPORT_FLAGS,
    html: { help: "write the run's report as one HTML file" },
    ...OUTPUT_FLAG,
    ...PLATFORM_FLAGS,
  },
  run(line) {
    const id = line.one("a run");
    if (line.on("html")) return exportReport(line, id, line.text("output"));
    const query = exportQuery(line);
    const file = line.text("output");
    return onPlatform(line, async ({ client, signal, term }) => {
      // Read first, so that an unknown run leaves no empty file behind.
      const run = await client.runs.get(id, { signal });
      const left = new LeftOutTally();
      const onLeftOut = (note: LeftOutNote) => left.add(note);
      const rows = client.runs.export(run.id, query, { signal, onLeftOut });
      if (file === undefined) {
        await printLines(rows, line.on("json"));
        left.lines().forEach(term.log);
        return {};
      }
      const written = await writeLines(rows, file, "output");
      const { format } = query;
      const json = { object: "export", run_id: run.id, format, rows: written, left_out: left.asJson(), file };
      return { json, text: () => [`${countText(written)} rows in ${file}`, ...left.lines()].join("\n") };
    });
  },
});

/** `file`: the path to write to; by default a file in this folder, named after the run. */
function exportReport(line: Parameters<typeof onPlatform>[0], id: string, file = `${id}.html`): Promise<ExitCode> {
  return onPlatform(line, async ({ client, signal }) => {
    const { readReportFile } = await import("../../sdk/report-file.ts");
    const { reportTemplate } = await import("../../local/page-bundle.ts");
    const report = await readReportFile(client, id, Math.floor(Date.now() / 1000), { signal });
    const html = fillReportFile(await reportTemplate(PACKAGE_ROOT), report);
    writeText(html, file, "output");
    const { run, rollouts, left_out } = report;
    const json = { object: "report", run_id: run.id, rollouts: rollouts.length, left_out, file };
    return { json, text: () => `the report with ${countText(rollouts.length)} rollouts in ${file}` };
  });
}

export function exportQuery(
  line: CommandLine<keyof typeof EXPORT_FLAGS>,
): ExportRunQuery & { readonly format: ExportFormat } {
  return {
    format: EXPORT_FORMATS.find((name) => name === line.text("format")) ?? "sft",
    min_reward: line.number("min-reward"),
    best_of_group: line.on("best-of-group") || undefined,
    dedupe: line.on("dedupe") || undefined,
  };
}

/** The most ids in one message. */
const NAMED = 5;

/** Adds up and reports what the pages of an export left out. */
export class LeftOutTally {
  readonly #reasons = new Map<string, number>();
  readonly #rollouts: string[] = [];
  #rows = 0;

  add({ rows, reasons, rollouts }: LeftOutNote): void {
    this.#rows += rows;
    for (const [reason, count] of Object.entries(reasons)) {
      this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + count);
    }
    this.#rollouts.push(...rollouts.slice(0, NAMED - this.#rollouts.length));
  }

  /** For the object of --json; null if nothing was left out. */
  asJson(): LeftOutNote | null {
    if (this.#rows === 0) return null;
    return { rows: this.#rows, reasons: Object.fromEntries(this.#reasons), rollouts: this.#rollouts };
  }

  /** For each reason, one line with the count and one with ids; empty if nothing was left out. */
  lines(): string[] {
    if (this.#rows === 0) return [];
    const why = Array.from(this.#reasons, ([reason, count]) => {
      return `${countText(count)} left out: ${meaningOf(reason)}`;
    });
    const more = this.#rows > this.#rollouts.length ? ", …" : "";
    return [...why, `of ${this.#rollouts.join(", ")}${more}`];
  }
}

/** A newer platform may have more reasons. */
function meaningOf(reason: string): string {
  return Object.entries(LEFT_OUT).find(([name]) => name === reason)?.[1] ?? reason;
}

export const RUN_ROWS_COMMANDS = [RESULTS, EXPORT] as const;
