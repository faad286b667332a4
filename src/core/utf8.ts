/** How many bytes a text takes as UTF-8. Counted by hand: core has no TextEncoder. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else bytes += code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

/** Whether a text takes more than `limit` bytes; most are settled by their length alone. */
export function exceedsUtf8(text: string, limit: number): boolean {
  return text.length > limit || (text.length * 3 > limit && utf8Bytes(text) > limit);
}
