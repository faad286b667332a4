/**
 * Whether the page shows what was written down before (a report as one file, or behind a public link): then there is no
 * platform to ask, and what leads to other pages is plain text.
 */
import { createContext, useContext } from "react";

export const Frozen = createContext(false);

export function useFrozen(): boolean {
  return useContext(Frozen);
}
