/** Cursors of lists as text that only we read: JSON in base64url. */
type Part = string | number | null;

export function encodeCursor(parts: readonly Part[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(parts));
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Null for a text that is none of ours. */
export function decodeCursor(text: string): Part[] | null {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const json: unknown = JSON.parse(new TextDecoder().decode(Uint8Array.from(binary, (one) => one.charCodeAt(0))));
    return Array.isArray(json) && json.every(isPart) ? json : null;
  } catch (thrown) {
    // What is no base64 is an InvalidCharacterError, what is no JSON a SyntaxError.
    if (thrown instanceof SyntaxError || thrown instanceof DOMException) return null;
    throw thrown;
  }
}

function isPart(value: unknown): value is Part {
  return value === null || typeof value === "string" || (typeof value === "number" && Number.isFinite(value));
}
