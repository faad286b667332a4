/**
 * A modal dialog, made with the browser's own element: it keeps the focus inside, closes on Escape and restores the
 * focus.
 */
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
      // The browser would focus the close button first.
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
