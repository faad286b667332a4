/** A field whose text is applied a moment after the last keystroke. `/` moves the focus here. */
import { useEffect, useId, useRef, useState } from "react";
import { useKeys } from "../layout/keys.tsx";

const PAUSE_MS = 300;

interface SearchFieldProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly placeholder: string;
  /** What `/` does: "search environments". */
  readonly action: string;
  /** In characters. */
  readonly most: number;
}

export function SearchField({ value, onChange, placeholder, action, most }: SearchFieldProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text.trim() !== value) latest.current(text.trim());
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  useKeys([{ keys: "/", label: action, run: () => field.current?.focus() }]);
  return (
    <search>
      <label htmlFor={id}>Search</label>{" "}
      <input
        ref={field}
        id={id}
        type="search"
        maxLength={most}
        autoComplete="off"
        spellCheck={false}
        placeholder={placeholder}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
    </search>
  );
}
