/**
 * Texts of a rollout that the list does not have: its last answer, the expected answer, what its judges said. They are
 * read for the rows in view, and dropped soon after they have left it.
 */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
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
  const { data, error } = useQuery({
    queryKey: ["rollout", row.id, "last answer"],
    queryFn: async ({ signal }) => {
      const page = await api.rollouts.turns.list(row.id, { before: AFTER_ALL, limit: 1 }, { signal });
      const last = page.data.at(-1);
      return last === undefined ? "" : lineOf(last.completion);
    },
    ...reading(row),
  });
  return <Line text={data} error={error} />;
}

export function ExpectedAnswer({ row }: { readonly row: Row }) {
  const { data, error } = useHead(row);
  return <Line text={data?.answer?.text} error={error} />;
}

export function JudgesWord({ row }: { readonly row: Row }) {
  const { data, error } = useHead(row);
  return <Line text={data?.judgements.map(judgementLine).join("; ")} error={error} />;
}

function useHead(row: Row): UseQueryResult<RolloutHead> {
  return useQuery({
    queryKey: ["rollout", row.id, "head of a row"],
    queryFn: ({ signal }) => api.rollouts.head(row.id, { signal }),
    ...reading(row),
  });
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

interface LineProps {
  readonly text: string | undefined;
  readonly error: Error | null;
}

function Line({ text, error }: LineProps) {
  if (error !== null) return <span title={allSeen(error.message)}>could not be read</span>;
  if (text === undefined || text === "") return NOTHING;
  const line = text.slice(0, MOST * 2).replaceAll(/\s+/g, " ");
  return (
    <span title={allSeen(line.slice(0, MOST))}>
      <Shown text={line} most={MOST} />
    </span>
  );
}
