/** A secret that is shown once: it stays on the page until the reader closes it, and is not stored. */
import { CopyButton } from "./copy-button.tsx";

interface ShownOnceProps {
  readonly what: string;
  readonly value: string | null;
  readonly onClose: () => void;
}

export function ShownOnce({ what, value, onClose }: ShownOnceProps) {
  if (value === null) return <p role="status">The {what} was shown in an earlier reply and is not stored.</p>;
  return (
    <div className="note warn" role="status">
      <p>
        <strong>The {what}, shown only once:</strong>
      </p>
      <p>
        <code>{value}</code>
      </p>
      <p className="row">
        <CopyButton text={value} what={what} />
        <button type="button" onClick={onClose}>
          I have saved it
        </button>
      </p>
    </div>
  );
}
