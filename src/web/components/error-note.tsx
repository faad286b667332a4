/**
 * Shows a failure so that the reader can act: what was refused, which field, what to quote in a report, and a retry
 * button.
 */
import { ApiRequestError } from "../../sdk/request-error.ts";
import { Shown } from "./shown.tsx";

interface ErrorNoteProps {
  readonly error: unknown;
  readonly onRetry?: (() => unknown) | undefined;
}

export function ErrorNote({ error, onRetry }: ErrorNoteProps) {
  return (
    <div className="note bad" role="alert">
      <p>
        <Shown text={messageOf(error)} />
      </p>
      {error instanceof ApiRequestError && (
        <p className="soft">
          {error.status} <code>{error.code}</code>
          {error.param !== null && (
            <>
              , field <code>{error.param}</code>
            </>
          )}
          {error.requestId !== null && (
            <>
              , request <code>{error.requestId}</code>
            </>
          )}
        </p>
      )}
      {onRetry !== undefined && (
        <button type="button" onClick={() => onRetry()}>
          Try again
        </button>
      )}
    </div>
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
