/** `rollcall run audit`: exit 1 when the records of a run differ. */
import { flatCounts, type RunAudit } from "../../contract/audit.ts";
import { readCommandLine } from "../command-line.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { onPlatform } from "../on-platform.ts";
import { countText, namedCounts } from "../terminal/format.ts";
import { columns } from "../terminal/table.ts";
import { safeLine } from "../terminal/text.ts";
import { RUN_AUDIT } from "./control-specs.ts";

export function runAuditCommand(argv: readonly string[]): Promise<ExitCode> {
  const line = readCommandLine(RUN_AUDIT, argv);
  const id = line.one("a run");
  return onPlatform(line, async ({ client, signal, answer }) => {
    const audit = await client.auditRun(id, { signal });
    answer(audit, () => auditText(audit));
    return audit.holds ? EXIT.good : EXIT.bad;
  });
}

function auditText({ run_id, holds, sources, notes, violations }: RunAudit): string {
  const { counters, run_rows, d1, r2 } = sources;
  const { drained_to: _, rows: _rows, ...stored } = d1;
  const table = columns(
    ["record", "says"],
    [
      ["counters", namedCounts(flatCounts(counters))],
      ["rows of the run", namedCounts(flatCounts(run_rows))],
      ["database", `${namedCounts(flatCounts(stored))} of ${countText(d1.drained_to)} written`],
      ["object store", `${countText(r2.rollouts)} rollouts in ${countText(r2.segments)} segments`],
    ],
  );
  const said = holds ? `${run_id} holds` : `${run_id} does not hold`;
  const broken = violations.map(({ rule, detail }) => `  ${rule}: ${safeLine(detail)}`);
  return [table, "", said, ...broken, ...notes.map((note) => `  ${safeLine(note)}`)].join("\n");
}
