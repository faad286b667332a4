import { Shown } from "./shown.tsx";

interface ChipProps {
  /** "model". */
  readonly name: string;
  readonly value: string;
  readonly onRemove: () => void;
}

/** A name that limits what is shown; a click removes the limit. */
export function Chip({ name, value, onRemove }: ChipProps) {
  return (
    <button type="button" className="chip" title={`Show every ${name}`} onClick={onRemove}>
      {name}: <Shown text={value} most={60} /> <span aria-hidden="true">×</span>
      <span className="visually-hidden">, remove</span>
    </button>
  );
}
