/** A button for an action that cannot be undone: it asks for confirmation, and shows an error. */
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Dialog } from "./dialog.tsx";
import { ErrorNote } from "./error-note.tsx";

interface ConfirmButtonProps {
  /** A verb: "Cancel run". */
  readonly name: string;
  /** What the action does. */
  readonly children: ReactNode;
  readonly act: () => Promise<unknown>;
  /** The action deletes something permanently. */
  readonly destroys?: boolean;
  readonly onDone?: () => void;
}

export function ConfirmButton({ name, children, act, destroys = false, onDone }: ConfirmButtonProps) {
  const [open, setOpen] = useState(false);
  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: act,
    onSuccess: () => {
      setOpen(false);
      onDone?.();
    },
  });
  const close = () => {
    setOpen(false);
    reset();
  };
  return (
    <>
      <button type="button" className={destroys ? "danger" : undefined} onClick={() => setOpen(true)}>
        {name}
      </button>
      <Dialog title={`${name}?`} open={open} onClose={close}>
        <div>{children}</div>
        {error !== null && <ErrorNote error={error} />}
        <p className="row">
          <button type="button" className="danger" disabled={isPending} onClick={() => mutate()}>
            {name}
          </button>
          <button type="button" onClick={close}>
            Go back
          </button>
        </p>
      </Dialog>
    </>
  );
}
