/** A modal dialog: the browser's own, which keeps the focus in it, closes on Escape and gives the focus back. */
import { type ReactNode, useEffect, useId, useRef } from "react";

interface DialogProps {
  readonly title: string;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function Dialog({ title, open, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    if (open) {
      element?.showModal();
      // The browser would begin at the button that closes it.
      element?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    } else element?.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-labelledby={heading} onClose={onClose}>
      <header className="row spread">
        <h2 id={heading}>{title}</h2>
        <button type="button" className="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      {open && children}
    </dialog>
  );
}
