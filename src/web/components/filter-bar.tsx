/**
 * The input field for a filter. It shows errors at their position while the user types, and offers completions. The
 * filter is applied on Enter, or when the field loses the focus. `/` moves the focus here.
 */
import { type KeyboardEvent, type RefObject, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { type FilterError, parseFilter } from "../../contract/filter.ts";
import { useKeys } from "../layout/keys.tsx";
import { type KnownWords, type Suggestion, type Suggestions, suggestionsAt } from "./filter-suggestions.ts";
import { Shown } from "./shown.tsx";
import "./filter-bar.css";

interface FilterBarProps extends KnownWords {
  readonly label: string;
  /** The filter that is applied. */
  readonly value: string;
  readonly onChange: (filter: string) => void;
}

export function FilterBar(props: FilterBarProps) {
  const { label, value } = props;
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const written = useWritten(props, field);
  const { text, caret, isOpen, at, offered, wrong } = written;
  useKeys([{ keys: "/", label: "write a filter", run: () => field.current?.focus() }]);
  const shows = isOpen && offered.options.length > 0;
  return (
    <search className="filter-bar">
      <label htmlFor={id}>{label}</label>
      <div className="row">
        <input
          ref={field}
          id={id}
          type="text"
          role="combobox"
          autoComplete="off"
          spellCheck={false}
          placeholder='reward<0.5 stop:max_turns_reached "text"'
          aria-expanded={shows}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={shows && at >= 0 ? `${id}-${at}` : undefined}
          aria-invalid={wrong !== null}
          aria-describedby={wrong === null ? undefined : `${id}-wrong`}
          value={text}
          onChange={({ target }) => written.write(target.value, target.selectionStart ?? target.value.length)}
          onSelect={({ currentTarget }) => written.moveCaret(currentTarget.selectionStart ?? caret)}
          onFocus={written.open}
          onBlur={written.leave}
          onKeyDown={written.onKey}
        />
        {value !== "" && (
          <button type="button" className="quiet" onClick={written.clear}>
            Clear
          </button>
        )}
      </div>
      {wrong !== null && <Wrong id={`${id}-wrong`} text={text} error={wrong} />}
      <div id={`${id}-list`} role="listbox" aria-label="Suggestions" className="offered" hidden={!shows}>
        {shows &&
          offered.options.map((option, index) => (
            <div
              key={option.text}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              // Runs before the field loses the focus, which would close the list.
              onMouseDown={(event) => {
                event.preventDefault();
                written.take(option);
              }}
            >
              <code>{option.text}</code> <span className="soft">{option.description}</span>
            </div>
          ))}
      </div>
    </search>
  );
}

/** The text in the field, which may differ from the applied filter. */
function useWritten({ value, onChange, ...known }: FilterBarProps, field: RefObject<HTMLInputElement | null>) {
  const [text, setText] = useState(value);
  const [caret, setCaret] = useState(value.length);
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const placed = useRef<number | null>(null);
  useEffect(() => setText(value), [value]);
  // Immediately, because the next key may already be on its way.
  useLayoutEffect(() => {
    if (placed.current !== null) field.current?.setSelectionRange(placed.current, placed.current);
    placed.current = null;
  });
  const parsed = parseFilter(text);
  const offered: Suggestions = isOpen ? suggestionsAt(text, caret, known) : { from: 0, to: 0, options: [] };
  const submit = (filter: string) => {
    setOpen(false);
    if (parseFilter(filter).ok && filter.trim() !== value) onChange(filter.trim());
  };
  const write = (next: string, to: number) => {
    setText(next);
    setCaret(to);
    setAt(-1);
    setOpen(true);
  };
  const take = ({ text: taken, whole }: Suggestion) => {
    const piece = whole ? `${taken} ` : taken;
    const end = offered.from + piece.length;
    write(text.slice(0, offered.from) + piece + text.slice(offered.to), end);
    placed.current = end;
  };
  const backOut = () => {
    if (isOpen) setOpen(false);
    else field.current?.blur();
  };
  const move = (step: number) => setAt(stepped(at, step, offered.options.length));
  const onKey = (event: KeyboardEvent) => {
    const chosen = offered.options[at];
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape") backOut();
    else if (chosen !== undefined && (event.key === "Enter" || event.key === "Tab")) take(chosen);
    else if (event.key === "Enter") submit(text);
    else return;
    event.preventDefault();
  };
  return {
    ...{ text, caret, isOpen, at, offered, write, take, onKey },
    // A term that is still being typed is not an error yet.
    wrong: parsed.ok || (isOpen && parsed.error.at >= offered.from) ? null : parsed.error,
    moveCaret: setCaret,
    open: () => setOpen(true),
    leave: () => submit(text),
    clear: () => {
      setText("");
      onChange("");
    },
  };
}

/** From none to the first or the last, then in a circle. */
function stepped(at: number, step: number, length: number): number {
  if (length === 0) return -1;
  if (at === -1) return step === 1 ? 0 : length - 1;
  return (at + step + length) % length;
}

/** Repeats the text with the error marked in it. */
function Wrong({ id, text, error }: { readonly id: string; readonly text: string; readonly error: FilterError }) {
  const { at, length, message } = error;
  return (
    <div id={id} className="field-error">
      <p className="wrong-place" aria-hidden="true">
        <Shown text={text.slice(0, at)} most={1000} />
        <mark>{length === 0 ? "▲" : <Shown text={text.slice(at, at + length)} />}</mark>
        <Shown text={text.slice(at + length)} most={1000} />
      </p>
      <p>
        <Shown text={message} />
      </p>
    </div>
  );
}
