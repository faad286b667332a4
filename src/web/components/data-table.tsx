/**
 * A table of any length: TanStack Virtual lays out the visible rows, TanStack Table their cells. The server sorts, so a
 * header only requests a sort order; the next page is requested when the end comes near. A row that exists but is not
 * loaded is undefined in `rows`.
 *
 * j and k or the arrow keys choose a row, and Enter opens it; the focus moves with it. One element scrolls in both
 * directions, and the head stays at its top. `table-place.ts` keeps the position.
 */
import { type ColumnDef, type RowData, tableFeatures, useTable } from "@tanstack/react-table";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef } from "react";
import { useKeys } from "../layout/keys.tsx";
import { type Chosen, useTablePlace } from "./table-place.ts";
import "./data-table.css";

const features = tableFeatures({});
const OVERSCAN = 10;
const SPACE = " ";
/** The minimum width, in characters, of a column without a fixed width. */
const LEAST = 20;
/** The next page is requested this many rows before the end. */
const NEAR = 20;
/** The height of the head in pixels; it covers the rows that scroll below it. */
const HEAD = 34;

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** The name under which the server can sort by it. */
  readonly sort?: string;
  /** Numbers are aligned to the right. */
  readonly numeric?: boolean;
  /** In characters; by default the remaining width, at least `least`. */
  readonly width?: number;
  /** Default: 20. */
  readonly least?: number;
  /** Its part of the remaining width, compared with the other columns without a fixed width. Default: 1. */
  readonly grow?: number;
}

/** `reward`, or `-reward` for descending order. */
export type Sort = string | undefined;

/** A key with an action on the chosen row; Space works only on the row that has the focus. */
export interface RowKey<Row> {
  readonly keys: string;
  readonly label: string;
  readonly run: (row: Row) => void;
}

interface DataTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** An undefined row exists but is not loaded. */
  readonly rows: readonly (Row | undefined)[];
  readonly rowId: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  readonly rowKeys?: readonly RowKey<Row>[];
  /** Identifies the set of rows, such as the page's filter. */
  readonly of?: string;
  readonly sort?: Sort;
  readonly onSort?: (sort: Sort) => void;
  /** Called when the end comes near. */
  readonly onEnd?: () => void;
  /** Called with the rows that are laid out, whenever they change. */
  readonly onSeen?: (first: number, last: number) => void;
  /** In pixels, the same for all rows. */
  readonly rowHeight?: number;
  /** The text for an empty table. */
  readonly empty: ReactNode;
}

export function DataTable<Row extends RowData>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowHeight = 36, empty } = props;
  const body = useRef<HTMLDivElement>(null);
  const { chosen, setChosen, initialOffset, sought } = useTablePlace(props, body, rowHeight);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => body.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    initialOffset,
    scrollPaddingEnd: HEAD,
    // The chosen row stays laid out wherever it is, because it has the focus.
    rangeExtractor: (range) => {
      const seen = defaultRangeExtractor(range);
      return chosen.at === -1 || seen.includes(chosen.at) ? seen : [...seen, chosen.at].sort((a, b) => a - b);
    },
  });
  useSeen(props, virtual.range, sought);
  const choose = (index: number, focus: boolean) => {
    const at = Math.max(0, Math.min(rows.length - 1, index));
    const row = rows[at];
    setChosen({ id: row === undefined ? null : props.rowId(row), at });
    if (!focus) return;
    virtual.scrollToIndex(at);
    requestAnimationFrame(() =>
      body.current?.querySelector<HTMLElement>(`[data-row="${at}"]`)?.focus({ preventScroll: true }),
    );
  };
  useRowKeys(props, chosen, choose);
  const template = columns
    .map(({ width, least = LEAST, grow = 1 }) => (width === undefined ? `minmax(${least}ch, ${grow}fr)` : `${width}ch`))
    .join(" ");
  const minWidth = `max(100%, ${columns.reduce((all, { least = LEAST, width = least }) => all + width, 0)}ch)`;
  const laidOut = { seen: virtual.getVirtualItems(), chosen, choose, template, rowHeight };
  return (
    <div
      className="data-table"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      ref={body}
      // Without rows nothing inside takes the focus, but the table may still need to scroll sideways.
      tabIndex={rows.length === 0 ? 0 : -1}
      style={{ scrollPaddingTop: HEAD }}
    >
      <Header {...props} template={template} minWidth={minWidth} />
      {rows.length === 0 ? (
        <div role="rowgroup">
          <div role="row" className="empty">
            <div role="cell">{empty}</div>
          </div>
        </div>
      ) : (
        <div role="rowgroup" className="rows" style={{ height: virtual.getTotalSize(), minWidth }}>
          <SeenRows {...props} {...laidOut} />
        </div>
      )}
    </div>
  );
}

type Choose = (index: number, focus: boolean) => void;

function useRowKeys<Row>({ rows, onOpen, rowKeys = [] }: DataTableProps<Row>, { at }: Chosen, choose: Choose): void {
  const withRow = (act: (row: Row) => void) => () => {
    const row = rows[at];
    if (row !== undefined) act(row);
  };
  const next = { label: "next row", run: () => choose(at + 1, true) };
  const before = { label: "previous row", run: () => choose(at - 1, true) };
  useKeys([
    ...["j", "n"].map((keys) => ({ keys, ...next })),
    ...["k", "p"].map((keys) => ({ keys, ...before })),
    ...(onOpen === undefined ? [] : [{ keys: "o", label: "open the row (or Enter)", run: withRow(onOpen) }]),
    ...rowKeys.filter(({ keys }) => keys !== SPACE).map(({ keys, label, run }) => ({ keys, label, run: withRow(run) })),
  ]);
}

interface Range {
  readonly startIndex: number;
  readonly endIndex: number;
}

function useSeen<Row>({ rows, onEnd, onSeen }: DataTableProps<Row>, range: Range | null, sought: number): void {
  const first = range?.startIndex ?? 0;
  const last = range?.endIndex ?? -1;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - NEAR) onEnd?.();
  }, [last, rows.length, onEnd]);
  useEffect(() => {
    if (last >= first) onSeen?.(first, Math.max(last, sought));
  }, [first, last, sought, onSeen]);
}

interface SeenRowsProps<Row> extends DataTableProps<Row> {
  readonly seen: readonly { readonly index: number; readonly start: number }[];
  readonly chosen: Chosen;
  readonly choose: Choose;
  readonly template: string;
  readonly rowHeight: number;
}

function SeenRows<Row extends RowData>(props: SeenRowsProps<Row>) {
  const { columns, rows, rowId, onOpen, rowKeys, seen, chosen, choose, template, rowHeight } = props;
  const loaded = seen.flatMap(({ index, start }) => {
    const row = rows[index];
    return row === undefined ? [] : [{ index, start, row }];
  });
  const table = useTable({
    features,
    columns: useMemo(() => columns.map(columnDef<Row>), [columns]),
    data: loaded.map(({ row }) => row),
  });
  const cells = table.getRowModel().rows;
  const place = (start: number) => ({ height: rowHeight, transform: `translateY(${start}px)` });
  const keys = new Set<string>();
  const waiting = seen.filter(({ index }) => rows[index] === undefined);
  return (
    <>
      {loaded.map(({ index, start, row }, nth) => {
        const id = rowId(row);
        // A list that changes while it is read may contain a row twice.
        const key = keys.has(id) ? `${id} ${index}` : id;
        keys.add(id);
        const open = () => onOpen?.(row);
        const space = () => rowKeys?.find(({ keys }) => keys === SPACE)?.run(row);
        return (
          <div
            key={key}
            role="row"
            aria-rowindex={index + 2}
            aria-selected={index === chosen.at}
            data-row={index}
            tabIndex={index === chosen.at || (chosen.at === -1 && nth === 0) ? 0 : -1}
            className="tr"
            style={{ gridTemplateColumns: template, ...place(start) }}
            onClick={(event) => clicked(event.target, open)}
            onFocus={() => choose(index, false)}
            onKeyDown={(event) => pressed(event, { open, space, move: (step) => choose(index + step, true) })}
          >
            {cells[nth]?.getAllCells().map((cell) => (
              <div key={cell.id} role="cell" className={numericClass(columns, cell.column.id)}>
                <table.FlexRender cell={cell} />
              </div>
            ))}
          </div>
        );
      })}
      {waiting.map(({ index, start }) => (
        <div key={index} role="row" aria-rowindex={index + 2} className="tr" style={place(start)}>
          <div role="cell" className="td soft">
            row {index + 1} is being loaded
          </div>
        </div>
      ))}
    </>
  );
}

function columnDef<Row extends RowData>({ id, header, cell }: Column<Row>): ColumnDef<typeof features, Row> {
  return { id, header, cell: ({ row }) => cell(row.original) };
}

function numericClass<Row>(columns: readonly Column<Row>[], id: string): string {
  return columns.find((column) => column.id === id)?.numeric ? "td numeric" : "td";
}

/** A click on a link or a button in the row does not open the row. */
function clicked(target: EventTarget, open: () => void): void {
  if (target instanceof Element && target.closest("a, button, input, label") === null) open();
}

interface RowActs {
  readonly open: () => void;
  readonly space: () => void;
  readonly move: (step: number) => void;
}

function pressed(event: KeyboardEvent, { open, space, move }: RowActs): void {
  if (event.target !== event.currentTarget) return;
  if (event.key === "Enter") open();
  else if (event.key === SPACE) space();
  else if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else return;
  event.preventDefault();
}

interface HeaderProps<Row> extends DataTableProps<Row> {
  readonly template: string;
  readonly minWidth: string;
}

function Header<Row>({ columns, sort, onSort, template, minWidth }: HeaderProps<Row>) {
  return (
    <div role="rowgroup" className="thead" style={{ minWidth, height: HEAD }}>
      <div role="row" className="tr head" style={{ gridTemplateColumns: template }}>
        {columns.map((column) => (
          <HeaderCell key={column.id} column={column} sort={sort} onSort={onSort} />
        ))}
      </div>
    </div>
  );
}

interface HeaderCellProps<Row> {
  readonly column: Column<Row>;
  readonly sort: Sort;
  readonly onSort: ((sort: Sort) => void) | undefined;
}

function HeaderCell<Row>({ column, sort, onSort }: HeaderCellProps<Row>) {
  const { header, numeric, sort: by } = column;
  const className = numeric ? "td numeric" : "td";
  if (by === undefined || onSort === undefined) {
    return (
      <div role="columnheader" className={className}>
        {header}
      </div>
    );
  }
  const direction = sort === by ? "ascending" : sort === `-${by}` ? "descending" : "none";
  const next = direction === "none" ? `-${by}` : direction === "descending" ? by : undefined;
  return (
    <div role="columnheader" className={className} aria-sort={direction}>
      <button type="button" className="link" onClick={() => onSort(next)}>
        {header} <span aria-hidden="true">{{ ascending: "▲", descending: "▼", none: "" }[direction]}</span>
      </button>
    </div>
  );
}
