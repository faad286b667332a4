import { useState } from "react";

/** Copies a text, and announces that, also to a screen reader. */
export function CopyButton({ text, what }: { readonly text: string | (() => string); readonly what: string }) {
  const [message, setMessage] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setMessage("Copied");
    } catch {
      setMessage("The browser refused to copy");
    }
  };
  return (
    <>
      <button type="button" className="quiet" onClick={copy}>
        Copy {what}
      </button>
      <span role="status" className="soft">
        {message}
      </span>
    </>
  );
}
