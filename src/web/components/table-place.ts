/**
 * Where a table stands: which row is chosen and how far it is scrolled. Neither moves when rows come in, and both are
 * there again for whoever comes back by the browser's history.
 */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useKept } from "../kept.ts";

/** The chosen row, and where it stands now; -1: none is chosen. An id of null: that row is not loaded. */
export interface Chosen {
  readonly id: string | null;
  readonly at: number;
}

/** Rows beyond its old place in which a row is looked for that rows came in before. */
const SOUGHT = 1000;

interface Place {
  readonly top: number;
  readonly chosen: Chosen;
}

interface Rows<Row> {
  /** Undefined: known of, and not loaded. */
  readonly rows: readonly (Row | undefined)[];
  readonly rowId: (row: Row) => string;
  readonly label: string;
  readonly of?: string;
  readonly sort?: string | undefined;
}

export interface TablePlace {
  readonly chosen: Chosen;
  readonly setChosen: (chosen: Chosen) => void;
  /** In pixels, as it was left. */
  readonly initialOffset: number;
  /** A row that has to be read, since the one that is held may be there; -1: none. */
  readonly sought: number;
}

/** `rowHeight`: in pixels; all rows have it. */
export function useTablePlace<Row>(
  table: Rows<Row>,
  body: RefObject<HTMLDivElement | null>,
  rowHeight: number,
): TablePlace {
  const [found, keep] = useKept<Place>(`${table.label} ${table.of ?? ""} ${table.sort ?? ""}`);
  const [chosen, setChosen] = useChosen(table, found?.chosen);
  const initialOffset = found?.top ?? 0;
  useLayoutEffect(() => {
    if (body.current !== null && initialOffset > 0) body.current.scrollTop = initialOffset;
  }, [body, initialOffset]);
  const sought = useAnchor(table, body, { rowHeight, chosen: chosen.at });
  const { id, at } = chosen;
  useEffect(() => {
    const element = body.current;
    if (element === null) return;
    const note = () => keep({ top: element.scrollTop, chosen: { id, at } });
    note();
    element.addEventListener("scroll", note, { passive: true });
    return () => element.removeEventListener("scroll", note);
  }, [body, keep, id, at]);
  return { chosen, setChosen, initialOffset, sought };
}

const NONE: Chosen = { id: null, at: -1 };

function useChosen<Row>({ rows, rowId }: Rows<Row>, left: Chosen = NONE): readonly [Chosen, (chosen: Chosen) => void] {
  const [chosen, setChosen] = useState(left);
  const isIt = (row: Row | undefined) => row !== undefined && rowId(row) === chosen.id;
  const there = rows[chosen.at];
  const stays = chosen.id === null || isIt(there) || (there === undefined && chosen.at < rows.length);
  return [{ id: chosen.id, at: stays ? chosen.at : rows.findIndex(isIt) }, setChosen];
}

interface AnchorSetting {
  readonly rowHeight: number;
  /** Its index, or -1. */
  readonly chosen: number;
}

/**
 * Keeps what is seen where it is when rows come in before it; at the very top the new rows are what is wanted. What is
 * held is the chosen row where it is seen, else the first that is. The answer is a row to read, or -1.
 */
function useAnchor<Row>(
  { rows, rowId }: Rows<Row>,
  body: RefObject<HTMLDivElement | null>,
  { rowHeight, chosen }: AnchorSetting,
): number {
  const [sought, setSought] = useState(-1);
  const anchor = useRef<{ readonly id: string; readonly at: number } | null>(null);
  useLayoutEffect(() => {
    const element = body.current;
    if (element === null) return;
    const before = anchor.current;
    const is = (row: Row | undefined) => row !== undefined && rowId(row) === before?.id;
    const at = before === null || is(rows[before.at]) ? before?.at : rows.findIndex(is);
    if (before !== null && at !== undefined && at !== -1 && element.scrollTop >= rowHeight) {
      element.scrollTop += (at - before.at) * rowHeight;
    }
    const remember = () => {
      const first = Math.ceil(element.scrollTop / rowHeight);
      const end = (element.scrollTop + element.clientHeight) / rowHeight;
      const index = chosen >= first && chosen + 1 < end && rows[chosen] !== undefined ? chosen : first;
      const row = rows[index];
      anchor.current = row === undefined ? null : { id: rowId(row), at: index };
    };
    // It may have gone into a page that is not read yet.
    const next = before === null || at !== -1 ? -1 : rows.indexOf(undefined, before.at);
    const isSought = before !== null && next !== -1 && next <= before.at + SOUGHT;
    if (isSought) setSought(next);
    else remember();
    const scrolled = () => {
      // Not before: until then what was found is not among the rows that are seen, and would be forgotten again.
      setSought(-1);
      remember();
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => element.removeEventListener("scroll", scrolled);
  }, [rows, rowId, body, rowHeight, chosen]);
  return sought;
}
