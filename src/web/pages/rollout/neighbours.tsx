/** Links back to the list that a rollout was opened from, and to the next and the previous rollout in it. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { RolloutHead } from "../../../contract/turns.ts";
import { useAddress } from "../../address.ts";
import { api, queryClient } from "../../client.ts";
import { messageOf } from "../../components/error-note.tsx";
import { countText } from "../../components/format.ts";
import { useKeys } from "../../layout/keys.tsx";

const PER_PAGE = 500;
/** The maximum number of pages of a list that are read to find the rollout. */
const MOST_PAGES = 40;
const KEPT_MS = 60_000;

interface List {
  readonly run: string;
  readonly filter: string | undefined;
  readonly sort: string | undefined;
}

interface IdPage {
  readonly ids: readonly string[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

export function Neighbours({ head }: { readonly head: RolloutHead }) {
  const [search] = useAddress();
  const navigate = useNavigate();
  const [message, setMessage] = useState("");
  const { list: run = head.run_id, filter, sort } = search;
  const list = { run, filter, sort };
  const step = async (by: 1 | -1) => {
    setMessage("Looking …");
    try {
      const found = await neighbourOf(list, head.id, by);
      setMessage(found.message);
      if (found.id === null) return;
      await navigate({
        to: "/rollouts/$id",
        params: { id: found.id } as never,
        search: { list: run, filter, sort } as never,
      });
    } catch (error) {
      setMessage(messageOf(error));
    }
  };
  useKeys([
    { keys: "n", label: "next rollout of the list", run: () => step(1) },
    { keys: "p", label: "previous rollout", run: () => step(-1) },
  ]);
  return (
    <p className="row">
      <Link to="/runs/$id" params={{ id: head.run_id } as never} search={{} as never}>
        Its run
      </Link>
      <Link
        to="/runs/$id/groups/$group"
        params={{ id: head.run_id, group: String(head.group) } as never}
        search={{} as never}
      >
        Its group
      </Link>
      <Link to="/runs/$id/rollouts" params={{ id: run } as never} search={{ filter, sort } as never}>
        {filter === undefined ? "All rollouts of the run" : "The list"}
      </Link>
      <button type="button" onClick={() => step(-1)}>
        Previous <kbd>p</kbd>
      </button>
      <button type="button" onClick={() => step(1)}>
        Next <kbd>n</kbd>
      </button>
      <span role="status" className="soft">
        {message}
      </span>
    </p>
  );
}

interface Found {
  readonly id: string | null;
  readonly message: string;
}

/** Reads the list from its start, page by page, until it finds the rollout; the pages are cached for a minute. */
async function neighbourOf(list: List, id: string, by: 1 | -1): Promise<Found> {
  let before: string | null = null;
  let after: string | null = null;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { ids, next }: IdPage = await readIds(list, after);
    const at = ids.indexOf(id);
    if (at >= 0 && by === -1) return messageFor(ids[at - 1] ?? before, "This is the first one.");
    if (at >= 0) return messageFor(ids[at + 1] ?? (await firstOf(list, next)), "This is the last one.");
    if (next === null) return { id: null, message: "It is not in this list." };
    before = ids.at(-1) ?? before;
    after = next;
  }
  return { id: null, message: `It is not among the first ${countText(MOST_PAGES * PER_PAGE)} of this list.` };
}

function messageFor(id: string | null, message: string): Found {
  return id === null ? { id, message } : { id, message: "" };
}

/** The first id of the page that begins after this cursor. */
async function firstOf(list: List, after: string | null): Promise<string | null> {
  return after === null ? null : ((await readIds(list, after)).ids[0] ?? null);
}

function readIds({ run, filter, sort }: List, after: string | null): Promise<IdPage> {
  return queryClient.fetchQuery({
    queryKey: ["ids", run, filter, sort, after],
    queryFn: async ({ signal }) => {
      const query = { filter, sort, limit: PER_PAGE, ...(after !== null && { after }) };
      const { data, has_more, last_id } = await api.rollouts.list(run, query, { signal });
      return { ids: data.map((row) => row.id), next: has_more ? last_id : null };
    },
    staleTime: KEPT_MS,
    gcTime: KEPT_MS,
  });
}
