/** Saves a run's rows as files. They are read page by page and kept outside the page's memory. */
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { fillReportFile } from "../../../contract/report-file.ts";
import type { RunView } from "../../../contract/run.ts";
import { readReportFile } from "../../../sdk/report-file.ts";
import { api } from "../../client.ts";
import { ErrorNote } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { saveRows } from "../../components/save-rows.ts";
import { ShareReport } from "./share.tsx";

interface Exported {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly rows: (run: string) => AsyncIterable<unknown>;
}

const EXPORTS: readonly Exported[] = [
  {
    id: "results",
    name: "Results",
    description: "every ended rollout, with its turns",
    rows: (run) => api.runs.results(run),
  },
  { id: "sft", name: "SFT", description: "conversations", rows: (run) => api.runs.export(run, { format: "sft" }) },
  {
    id: "dpo",
    name: "DPO",
    description: "pairs of a better and a worse rollout",
    rows: (run) => api.runs.export(run, { format: "dpo" }),
  },
  {
    id: "verifiers",
    name: "verifiers",
    description: "rows in the format of verifiers",
    rows: (run) => api.runs.export(run, { format: "verifiers" }),
  },
];

export function ExportRun({ run }: { readonly run: RunView }) {
  const [written, setWritten] = useState<number | null>(null);
  const { mutate, isPending, error } = useMutation({
    mutationFn: ({ id, rows }: Exported) => saveRows(`${run.id}-${id}.jsonl`, rows(run.id), setWritten),
  });
  return (
    <>
      <h3>Share the report</h3>
      <ShareReport runId={run.id} />
      <h3>Files</h3>
      <SaveReport run={run} />
      <p>Rows, one JSON object per line:</p>
      <ul className="plain">
        {EXPORTS.map((one) => (
          <li key={one.id} className="row">
            <button type="button" disabled={isPending} onClick={() => mutate(one)}>
              {one.name}
            </button>
            <span className="soft">{one.description}</span>
          </li>
        ))}
      </ul>
      <p role="status">{written !== null && `${countText(written)} rows ${isPending ? "so far" : "written"}`}</p>
      {error !== null && <ErrorNote error={error} />}
    </>
  );
}

/** The URL of the template, which the build makes and names by its content. */
declare const REPORT_TEMPLATE: string;

function SaveReport({ run }: { readonly run: RunView }) {
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      const template = await fetch(REPORT_TEMPLATE);
      if (!template.ok) throw new Error(`the report template could not be read: ${template.status}. Reload this page`);
      const report = await readReportFile(api, run.id, Math.floor(Date.now() / 1000));
      saveText(`${run.id}.html`, fillReportFile(await template.text(), report));
    },
  });
  return (
    <div>
      <p className="row">
        <button type="button" disabled={isPending} onClick={() => mutate()}>
          {isPending ? "Reading …" : "Report as one HTML file"}
        </button>
        <span className="soft">opens from disk, without a network</span>
      </p>
      {error !== null && <ErrorNote error={error} />}
    </div>
  );
}

function saveText(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
