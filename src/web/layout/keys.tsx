/**
 * Keys that work anywhere on a page. A page registers its own with `useKeys`; the help (`?`) shows all that work at the
 * moment. Keys that are typed into a field, or pressed with Control, Alt or Command, are left to the browser.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";

export interface KeyBinding {
  /** `j`, `?`, `/`, `Escape`, or a sequence of two: `g r`. */
  readonly keys: string;
  /** What it does, as a verb: "next rollout". */
  readonly label: string;
  readonly run: () => void;
}

interface Registry {
  readonly add: (bindings: readonly KeyBinding[]) => () => void;
  readonly all: () => readonly KeyBinding[];
}

const Keys = createContext<Registry | null>(null);
/** The longest time between the two keys of a sequence. */
const SEQUENCE_MS = 1500;

export function KeyProvider({ children }: { readonly children: ReactNode }) {
  const sets = useRef(new Set<readonly KeyBinding[]>());
  const registry = useMemo<Registry>(() => {
    return {
      add: (bindings) => {
        sets.current.add(bindings);
        return () => sets.current.delete(bindings);
      },
      // The bindings that were registered last belong to the page itself, and take precedence.
      all: () => [...sets.current].reverse().flat(),
    };
  }, []);
  useEffect(() => listen(registry), [registry]);
  return <Keys value={registry}>{children}</Keys>;
}

function listen(registry: Registry): () => void {
  let first: { readonly key: string; readonly at: number } | null = null;
  const onKey = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event)) return;
    const sequence = first !== null && Date.now() - first.at < SEQUENCE_MS ? `${first.key} ${event.key}` : null;
    const bindings = registry.all();
    const found =
      bindings.find(({ keys }) => keys === sequence) ?? bindings.find(({ keys }) => keys === event.key) ?? null;
    first = bindings.some(({ keys }) => keys.startsWith(`${event.key} `)) ? { key: event.key, at: Date.now() } : null;
    if (found === null) return;
    event.preventDefault();
    found.run();
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (document.querySelector("dialog[open]")?.contains(target)) return true;
  if (key === "Escape") return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function useRegistry(): Registry {
  const registry = useContext(Keys);
  if (registry === null) throw new Error("keys work inside of KeyProvider");
  return registry;
}

/** Registers keys while the component is on the page; their functions may change with each render. */
export function useKeys(bindings: readonly KeyBinding[]): void {
  const registry = useRegistry();
  const latest = useRef(bindings);
  useEffect(() => {
    latest.current = bindings;
  });
  const named = bindings.map(({ keys, label }) => `${keys}\0${label}`).join("\n");
  useEffect(() => {
    const stable = named.split("\n").flatMap((line) => {
      const [keys = "", label = ""] = line.split("\0");
      if (keys === "") return [];
      return [{ keys, label, run: () => latest.current.find((one) => one.keys === keys)?.run() }];
    });
    return registry.add(stable);
  }, [registry, named]);
}

/** All keys that work now, once each; collected again whenever `open` becomes true. */
export function useAllKeys(open: boolean): readonly KeyBinding[] {
  const registry = useRegistry();
  const [all, setAll] = useState<readonly KeyBinding[]>([]);
  useEffect(() => {
    if (!open) return;
    const seen = new Map(registry.all().map((one) => [one.keys, one]));
    setAll([...seen.values()]);
  }, [open, registry]);
  return all;
}
