/**
 * Texts of a rollout that the list does not have: its last answer, the expected answer, what its judges said. They are
 * read for the rows in view, and dropped soon after they have left it.
 */
import { useQuery } from "@tanstack/react-query";
import type { Judgement } from "../../../contract/judgement.ts";
import type { RolloutSummary } from "../../../contract/rollout-list.ts";
import { allSeen } from "../../../contract/shown-text.ts";
import type { MessageBeginning, RolloutHead } from "../../../contract/turns.ts";
import { api } from "../../client.ts";
import { NOTHING } from "../../components/format.ts";
import { Shown } from "../../components/shown.tsx";

/** No rollout has so many turns: the page before it ends with the last turn. */
const AFTER_ALL = 1_000_000_000;
const KEPT_MS = 30_000;
/** How many characters of a text a cell has. */
const MOST = 200;

type Row = Pick<RolloutSummary, "id" | "status">;

/** An ended rollout is not read again. */
const reading = ({ status }: Row) => ({
  enabled: status === "done",
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: KEPT_MS,
});

export function LastAnswer({ row }: { readonly row: Row }) {
  const { data } = useQuery({
    queryKey: ["rollout", row.id, "last answer"],
    queryFn: async ({ signal }) => {
      const page = await api.rollouts.turns.list(row.id, { before: AFTER_ALL, limit: 1 }, { signal });
      const last = page.data.at(-1);
      return last === undefined ? "" : lineOf(last.completion);
    },
    ...reading(row),
  });
  return <Line text={data} />;
}

export function ExpectedAnswer({ row }: { readonly row: Row }) {
  return <Line text={useHead(row)?.answer?.text} />;
}

export function JudgesWord({ row }: { readonly row: Row }) {
  return <Line text={useHead(row)?.judgements.map(judgementLine).join("; ")} />;
}

function useHead(row: Row): RolloutHead | undefined {
  const { data } = useQuery({
    queryKey: ["rollout", row.id, "head of a row"],
    queryFn: ({ signal }) => api.rollouts.head(row.id, { signal }),
    ...reading(row),
  });
  return data;
}

function judgementLine({ verdict, reason, error }: Judgement): string {
  if (verdict === null) return `no judgement: ${error ?? "unknown"}`;
  const said = typeof verdict === "object" ? JSON.stringify(verdict) : String(verdict);
  return reason === null ? said : `${said}: ${reason}`;
}

/** The text of a message, or else the tools that it calls. */
function lineOf({ content, tool_calls = [] }: MessageBeginning): string {
  const text = content
    .map((part) => part.text)
    .join(" ")
    .trim();
  return text === "" ? tool_calls.map(({ name }) => `${name}()`).join(", ") : text;
}

function Line({ text }: { readonly text: string | undefined }) {
  if (text === undefined || text === "") return NOTHING;
  const line = text.slice(0, MOST * 2).replaceAll(/\s+/g, " ");
  return (
    <span title={allSeen(line.slice(0, MOST))}>
      <Shown text={line} most={MOST} />
    </span>
  );
}
