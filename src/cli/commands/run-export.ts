/** `rollcall run export`: rows for training, made of a run's rollouts, to stdout or a file. */
import { EXPORT_FORMATS, type ExportFormat } from "../../contract/export.ts";
import type { ExportRunQuery, LeftOutNote } from "../../sdk/client.ts";
import { type CommandLine, readCommandLine } from "../command-line.ts";
import { LeftOutTally } from "../eval/left-out.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { printLines, writeLines } from "../json-lines.ts";
import { onPlatform } from "../on-platform.ts";
import { countText } from "../terminal/format.ts";
import { type EXPORT_FLAGS, RUN_EXPORT } from "./export-spec.ts";

export function runExportCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_EXPORT, argv);
  const id = line.one("a run");
  const query = exportQuery(line);
  const file = line.text("output");
  return onPlatform(line, async ({ client, signal, answer, term }) => {
    // Read first: a run nobody knows leaves no empty file behind.
    const run = await client.getRun(id, { signal });
    const left = new LeftOutTally();
    const onLeftOut = (note: LeftOutNote) => left.add(note);
    const rows = client.exportRun(run.id, query, { signal, onLeftOut });
    if (file === undefined) {
      await printLines(rows, line.on("json"));
      left.lines().forEach(term.say);
      return EXIT.good;
    }
    const written = await writeLines(rows, file, "output");
    const { format } = query;
    const left_out = left.asJson();
    const answered = { object: "export", run_id: run.id, format, rows: written, left_out, file };
    answer(answered, () => [`${countText(written)} rows in ${file}`, ...left.lines()].join("\n"));
    return EXIT.good;
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
