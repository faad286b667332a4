import { useEffect } from "react";

/** Sets the title of the browser's tab, which a screen reader reads first. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "Rollcall" : `${title} · Rollcall`;
  }, [title]);
}
