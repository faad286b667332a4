/** Cursors of lists, as opaque text: JSON in base64url. */
type Part = string | number | null;

export function encodeCursor(parts: readonly Part[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(parts));
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Null if the text is not a cursor. */
export function decodeCursor(text: string): Part[] | null {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const json: unknown = JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (one) => one.charCodeAt(0))));
    return Array.isArray(json) && json.every(isPart) ? json : null;
  } catch (thrown) {
    // Invalid base64 throws InvalidCharacterError (a DOMException), invalid JSON throws SyntaxError.
    if (thrown instanceof SyntaxError || thrown instanceof DOMException) return null;
    throw thrown;
  }
}

function isPart(value: unknown): value is Part {
  return value === null || typeof value === "string" || (typeof value === "number" && Number.isFinite(value));
}
