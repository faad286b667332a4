/** A button that sends a request: it waits for the answer, and shows an error next to itself. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ErrorNote } from "./error-note.tsx";

interface ActionButtonProps<Answer> {
  readonly children: ReactNode;
  readonly act: () => Promise<Answer>;
  /** The first parts of the keys of the queries to read again afterwards. */
  readonly changes?: readonly string[];
  /** The message for the answer. */
  readonly message?: (answer: Answer) => ReactNode;
}

export function ActionButton<Answer>({ children, act, changes = [], message }: ActionButtonProps<Answer>) {
  const queries = useQueryClient();
  const { mutate, isPending, error, data } = useMutation({
    mutationFn: act,
    onSuccess: () => Promise.all(changes.map((noun) => queries.invalidateQueries({ queryKey: [noun] }))),
  });
  return (
    <span className="action">
      <button type="button" disabled={isPending} onClick={() => mutate()}>
        {children}
      </button>
      <span role="status">{data !== undefined && message?.(data)}</span>
      {error !== null && <ErrorNote error={error} />}
    </span>
  );
}
