import { useEffect } from "react";

/** The title of the browser's tab, and what a screen reader says of the page first. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "Rollcall" : `${title} · Rollcall`;
  }, [title]);
}
