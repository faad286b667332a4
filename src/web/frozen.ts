/**
 * Whether the page shows a stored report (as one file, or at a public link): then it sends no requests to the platform,
 * and links to other pages are plain text.
 */
import { createContext, useContext } from "react";

export const Frozen = createContext(false);

export function useFrozen(): boolean {
  return useContext(Frozen);
}
