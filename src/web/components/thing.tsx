/**
 * What the pages of things (endpoints, datasets, triggers, …) share: a list of all of them, the form that makes another,
 * the page of one, and the button that deletes it.
 */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import type { Permission } from "../../contract/identity.ts";
import type { CallOptions, ListQuery, Page } from "../../sdk/options.ts";
import { queryClient } from "../client.ts";
import { useMay } from "../layout/session.tsx";
import { useDocumentTitle } from "../layout/title.ts";
import { ConfirmButton } from "./confirm-button.tsx";
import { type Column, DataTable } from "./data-table.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Form } from "./form.tsx";
import { Loading } from "./loading.tsx";
import { Shown } from "./shown.tsx";

const PAGE = 50;

interface ThingListProps<Thing extends object> {
  /** "Endpoints". */
  readonly title: string;
  /** The first part of the keys of its queries. */
  readonly noun: string;
  readonly list: (query: ListQuery, options: CallOptions) => Promise<Page<Thing>>;
  readonly columns: readonly Column<Thing>[];
  readonly idOf: (thing: Thing) => string;
  /** The path of one: "/endpoints". Absent: one has no page. */
  readonly path?: string;
  readonly empty: ReactNode;
}

/** All of them, newest first, page after page. */
function ThingTable<Thing extends object>(props: ThingListProps<Thing>) {
  const { title, noun, list, columns, idOf, path, empty } = props;
  const query = useInfiniteQuery({
    queryKey: [noun, "list"],
    queryFn: ({ pageParam, signal }) => list({ limit: PAGE, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? (page.last_id ?? undefined) : undefined),
  });
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = query;
  const navigate = useNavigate();
  const rows = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetching) fetchNextPage().catch(reportError);
  }, [hasNextPage, isFetching, fetchNextPage]);
  const open = (thing: Thing) => {
    const to = `${path}/${encodeURIComponent(idOf(thing))}`;
    navigate({ to, search: {} as never }).catch(reportError);
  };
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what={title.toLowerCase()} />;
  return (
    <DataTable
      label={title}
      columns={columns}
      rows={rows}
      rowId={idOf}
      onEnd={more}
      empty={empty}
      {...(path !== undefined && { onOpen: open })}
    />
  );
}

/** The page of all of one kind. `children` stand between heading and table. */
export function ThingsPage<Thing extends object>(props: ThingListProps<Thing> & { readonly children?: ReactNode }) {
  useDocumentTitle(props.title);
  return (
    <main>
      <h1>{props.title}</h1>
      {props.children}
      <ThingTable {...props} />
    </main>
  );
}

interface MakeThingProps<Made> {
  readonly noun: string;
  /** On the button and above the form: "Make a fleet". */
  readonly name: string;
  readonly submit: string;
  readonly permission: Permission;
  readonly act: (fields: FormData) => Promise<Made>;
  readonly onMade?: (made: Made) => void;
  /** Names of the fields that show their own refusal. */
  readonly fields: readonly string[];
  readonly children: ReactNode;
}

/** A button, for whoever may, and the form behind it that makes another. */
export function MakeThing<Made>(props: MakeThingProps<Made>) {
  const { noun, name, submit, permission, act, onMade, fields, children } = props;
  const [open, setOpen] = useState(false);
  const may = useMay(permission);
  if (!may) return null;
  const done = (made: Made) => {
    onMade?.(made);
    setOpen(false);
  };
  return (
    <>
      <p>
        <button type="button" onClick={() => setOpen(true)}>
          {name}
        </button>
      </p>
      <Dialog title={name} open={open} onClose={() => setOpen(false)}>
        <Form submit={submit} act={act} onDone={done} changes={[noun]} fields={fields}>
          {children}
        </Form>
      </Dialog>
    </>
  );
}

interface ThingPageProps<Thing extends object> {
  readonly noun: string;
  readonly id: string;
  readonly load: (options: CallOptions) => Promise<Thing>;
  readonly nameOf: (thing: Thing) => string;
  readonly children: (thing: Thing) => ReactNode;
  /** How often it is read again, in milliseconds. */
  readonly refetchMs?: number;
}

/** The page of one thing. */
export function ThingPage<Thing extends object>({
  noun,
  id,
  load,
  nameOf,
  children,
  refetchMs,
}: ThingPageProps<Thing>) {
  const { data, error, refetch } = useQuery({
    queryKey: [noun, id],
    queryFn: ({ signal }) => load({ signal }),
    ...(refetchMs !== undefined && { refetchInterval: refetchMs }),
  });
  useDocumentTitle(data === undefined ? noun : nameOf(data));
  return (
    <main>
      <h1>{data === undefined ? noun : <Shown text={nameOf(data)} />}</h1>
      {error !== null && <ErrorNote error={error} onRetry={() => refetch()} />}
      {data === undefined && error === null && <Loading what={`this ${noun}`} />}
      {data !== undefined && children(data)}
    </main>
  );
}

interface DeleteThingProps {
  readonly noun: string;
  /** The path of the list, which is what is left to look at. */
  readonly path: string;
  /** "Delete fleet". */
  readonly name?: string;
  readonly act: () => Promise<unknown>;
  /** What will happen. */
  readonly children: ReactNode;
}

export function DeleteThing({ noun, path, name = `Delete ${noun}`, act, children }: DeleteThingProps) {
  const navigate = useNavigate();
  const gone = () => {
    queryClient.removeQueries({ queryKey: [noun] });
    navigate({ to: path, search: {} as never }).catch(reportError);
  };
  return (
    <ConfirmButton name={name} act={act} onDone={gone}>
      {children}
    </ConfirmButton>
  );
}
