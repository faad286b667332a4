/**
 * The position of a table: its chosen row and its scroll offset. Neither moves when rows are added, and both are
 * restored when the reader comes back through the browser's history.
 */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useKept } from "../kept.ts";

/** The chosen row and its current index; -1 if none is chosen. If the id is null, that row is not loaded. */
export interface Chosen {
  readonly id: string | null;
  readonly at: number;
}

/** How far after its old index a row is searched when rows were added before it. */
const SOUGHT = 1000;

interface Place {
  readonly top: number;
  readonly chosen: Chosen;
}

interface Rows<Row> {
  /** An undefined row exists but is not loaded. */
  readonly rows: readonly (Row | undefined)[];
  readonly rowId: (row: Row) => string;
  readonly label: string;
  readonly of?: string;
  readonly sort?: string | undefined;
}

export interface TablePlace {
  readonly chosen: Chosen;
  readonly setChosen: (chosen: Chosen) => void;
  /** The last scroll offset, in pixels. */
  readonly initialOffset: number;
  /** The index of a row to load because the row at the kept position may be there; -1 for none. */
  readonly sought: number;
}

/** `rowHeight`: in pixels, the same for all rows. */
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
 * Keeps the visible rows in place when rows are added before them; at the very top it shows the new rows instead. It
 * keeps the position of the chosen row if that is visible, else of the first visible row. Returns the index of a row to
 * load, or -1.
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
    // The row may have moved to a page that is not loaded.
    const next = before === null || at !== -1 ? -1 : rows.indexOf(undefined, before.at);
    const isSought = before !== null && next !== -1 && next <= before.at + SOUGHT;
    if (isSought) setSought(next);
    else remember();
    const scrolled = () => {
      // Not earlier: until then the row is not among the visible rows, and would be unloaded again.
      setSought(-1);
      remember();
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => element.removeEventListener("scroll", scrolled);
  }, [rows, rowId, body, rowHeight, chosen]);
  return sought;
}
