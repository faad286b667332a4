/**
 * Shared parts of the pages of resources (endpoints, datasets, triggers, …): the list, the form that creates one, the
 * page of one, and the button that deletes it.
 */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
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

interface ResourceListProps<Resource extends object> {
  /** "Endpoints". */
  readonly title: string;
  /** The first part of the keys of its queries. */
  readonly noun: string;
  readonly list: (query: ListQuery, options: CallOptions) => Promise<Page<Resource>>;
  readonly columns: readonly Column<Resource>[];
  readonly idOf: (thing: Resource) => string;
  /** The path of one: "/endpoints". Absent if there is no such page. */
  readonly path?: string;
  readonly empty: ReactNode;
  /** Identifies the filter of `list`; another filter gives another list. */
  readonly of?: string;
  /** In pixels. */
  readonly rowHeight?: number;
}

/** All resources, newest first, page by page. */
function ResourceTable<Resource extends object>(props: ResourceListProps<Resource>) {
  const { title, noun, list, columns, idOf, path, empty, of = "", rowHeight } = props;
  const query = useInfiniteQuery({
    queryKey: [noun, "list", of],
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
  const pathOf = (thing: Resource) => `${path}/${encodeURIComponent(idOf(thing))}`;
  const open = (thing: Resource) => {
    navigate({ to: pathOf(thing), search: {} as never }).catch(reportError);
  };
  if (error !== null) return <ErrorNote error={error} onRetry={() => refetch()} />;
  if (data === undefined) return <Loading what={title.toLowerCase()} />;
  return (
    <DataTable
      key={of}
      of={of}
      label={title}
      columns={path === undefined ? columns : withLink(columns, pathOf)}
      rows={rows}
      rowId={idOf}
      onEnd={more}
      empty={empty}
      {...(path !== undefined && { onOpen: open })}
      {...(rowHeight !== undefined && { rowHeight })}
    />
  );
}

/** The first column links to the resource's page. */
function withLink<Resource>(
  columns: readonly Column<Resource>[],
  pathOf: (thing: Resource) => string,
): readonly Column<Resource>[] {
  return columns.map((column, at) => {
    if (at > 0) return column;
    const cell = (thing: Resource) => (
      <Link to={pathOf(thing)} search={{} as never}>
        {column.cell(thing)}
      </Link>
    );
    return { ...column, cell };
  });
}

interface ResourcesPageProps<Resource extends object> extends ResourceListProps<Resource> {
  /** A button that creates one, next to the heading. */
  readonly action?: ReactNode;
  /** Content between the heading and the table. */
  readonly children?: ReactNode;
}

/** The page that lists all resources of one kind. */
export function ResourcesPage<Resource extends object>(props: ResourcesPageProps<Resource>) {
  useDocumentTitle(props.title);
  return (
    <main>
      <div className="row spread page-head">
        <h1>{props.title}</h1>
        {props.action}
      </div>
      {props.children}
      <ResourceTable {...props} />
    </main>
  );
}

interface CreateResourceProps<Made> {
  readonly noun: string;
  /** The label of the button and the title of the form: "Make a fleet". */
  readonly name: string;
  readonly submit: string;
  readonly permission: Permission;
  readonly act: (fields: FormData) => Promise<Made>;
  readonly onMade?: (made: Made) => void;
  /** The names of the fields that show their own errors. */
  readonly fields: readonly string[];
  readonly children: ReactNode;
}

/** A button for users who may create one, and its form. */
export function CreateResource<Made>(props: CreateResourceProps<Made>) {
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
      <button type="button" onClick={() => setOpen(true)}>
        {name}
      </button>
      <Dialog title={name} open={open} onClose={() => setOpen(false)}>
        <Form submit={submit} act={act} onDone={done} changes={[noun]} fields={fields}>
          {children}
        </Form>
      </Dialog>
    </>
  );
}

interface ResourcePageProps<Resource extends object> {
  readonly noun: string;
  readonly id: string;
  readonly load: (options: CallOptions) => Promise<Resource>;
  readonly nameOf: (thing: Resource) => string;
  readonly children: (thing: Resource) => ReactNode;
  /** How often it is read again, in milliseconds. */
  readonly refetchMs?: number;
}

/** The page of one resource. */
export function ResourcePage<Resource extends object>({
  noun,
  id,
  load,
  nameOf,
  children,
  refetchMs,
}: ResourcePageProps<Resource>) {
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

interface DeleteResourceProps {
  readonly noun: string;
  /** The path of the list, which is opened after the deletion. */
  readonly path: string;
  /** "Delete fleet". */
  readonly name?: string;
  readonly act: () => Promise<unknown>;
  /** What the action does. */
  readonly children: ReactNode;
}

export function DeleteResource({ noun, path, name = `Delete ${noun}`, act, children }: DeleteResourceProps) {
  const navigate = useNavigate();
  const gone = () => {
    queryClient.removeQueries({ queryKey: [noun] });
    navigate({ to: path, search: {} as never }).catch(reportError);
  };
  return (
    <ConfirmButton destroys name={name} act={act} onDone={gone}>
      {children}
    </ConfirmButton>
  );
}
