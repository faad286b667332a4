/** The command palette (Control or Command + K): every page, every action of the open page, and any id. */
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { Dialog } from "../components/dialog.tsx";
import { useAllKeys } from "./keys.tsx";
import { SECTIONS } from "./sections.ts";

interface Command {
  readonly name: string;
  readonly hint: string;
  readonly run: () => void;
}

const ID_PAGES: readonly (readonly [prefix: string, path: string])[] = [
  ["run_", "/runs"],
  ["ro_", "/rollouts"],
  ["ds_", "/datasets"],
  ["ep_", "/endpoints"],
  ["fl_", "/fleets"],
  ["tr_", "/triggers"],
  ["whe_", "/webhooks"],
];

export function usePalette(): readonly [open: boolean, setOpen: (open: boolean) => void] {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key !== "k" || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return [open, setOpen];
}

export function Palette({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  return (
    <Dialog title="Command palette" open={open} onClose={onClose}>
      <Commands open={open} onClose={onClose} />
    </Dialog>
  );
}

function Commands({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const found = useCommands(open, text.trim());
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setAt((before) => (before + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") run(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <div className="palette">
      <input
        type="text"
        role="combobox"
        aria-label="A page, an action, or the id of anything"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found[at] === undefined ? undefined : `${list}-${at}`}
        placeholder="a page, an action, or an id"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <div id={list} role="listbox" aria-label="Results" className="found">
        {found.map((command, index) => (
          <div
            key={command.name}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => run(command)}
            onKeyDown={onKey}
          >
            <span>{command.name}</span>
            <kbd>{command.hint}</kbd>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="soft">No results.</p>}
    </div>
  );
}

function useCommands(open: boolean, text: string): readonly Command[] {
  const navigate = useNavigate();
  const keys = useAllKeys(open);
  const go = (path: string) => () => {
    navigate({ to: path, search: {} as never }).catch(reportError);
  };
  const [, path] = ID_PAGES.find(([prefix]) => text.startsWith(prefix)) ?? [];
  if (path !== undefined) return [{ name: text, hint: "open", run: go(`${path}/${encodeURIComponent(text)}`) }];
  const pages = SECTIONS.map(({ name, path: to, key }) => ({ name, hint: `g ${key}`, run: go(to) }));
  const actions = keys
    .filter(({ keys: combination }) => !combination.startsWith("g "))
    .map(({ label, keys: hint, run }) => ({ name: label, hint, run }));
  const wanted = text.toLowerCase();
  return [...pages, ...actions].filter(({ name }) => name.toLowerCase().includes(wanted));
}
