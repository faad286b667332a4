/**
 * Finds the positions of the parts of a stored trajectory in one pass over its bytes, so that a page of a long one can
 * be read without the rest. The bytes were written by `JSON.stringify`, in UTF-8 and without white space. A segment has
 * one line of them per rollout.
 */

/** Half-open range, in bytes of the R2 object. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export interface TurnPlaces {
  /** The start of each turn, and of one after the last: a turn ends one byte (its comma) before the next start. */
  readonly starts: Uint32Array;
  /** Members of the trajectory by name: from the quote before the name to the end of the value. */
  readonly members: ReadonlyMap<string, ByteRange>;
}

/** `missing`: the bytes ended before the trajectory. `empty`: the rollout has none. */
type Found = TurnPlaces | "missing" | "empty";

const [QUOTE, BACKSLASH, COMMA, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, NEWLINE] = [
  ...new TextEncoder().encode('"\\,{}[]\n'),
] as [number, number, number, number, number, number, number, number];

/** `before`: the text before the trajectory at the start of its line; "" if the trajectory is the whole object. */
export async function locateTurns(stream: ReadableStream<Uint8Array>, before: string): Promise<Found> {
  const line = new LineStart(new TextEncoder().encode(before));
  const places = new Places();
  let offset = 0;
  for await (const chunk of stream) {
    let at = line.skip(chunk);
    if (at < chunk.length && !places.begun) {
      if (chunk[at] !== OPEN) return "empty";
    }
    if (at < chunk.length) at = places.read(chunk, at, offset);
    if (places.done) return places.found();
    offset += chunk.length;
  }
  return "missing";
}

/** Finds the line that begins with the given bytes. */
class LineStart {
  readonly #wanted: Uint8Array;
  /** How many of the wanted bytes this line began with; -1 if it is another line. */
  #matched = 0;

  constructor(wanted: Uint8Array) {
    this.#wanted = wanted;
  }

  /** The position after the wanted bytes in this chunk; the chunk's length if they do not end in it. */
  skip(chunk: Uint8Array): number {
    let at = 0;
    while (this.#matched < this.#wanted.length && at < chunk.length) {
      if (this.#matched >= 0 && chunk[at] === this.#wanted[this.#matched]) {
        this.#matched += 1;
        at += 1;
        continue;
      }
      const end = chunk.indexOf(NEWLINE, at);
      this.#matched = end < 0 ? -1 : 0;
      at = end < 0 ? chunk.length : end + 1;
    }
    return at;
  }
}

/** The pass over the trajectory itself. */
class Places {
  begun = false;
  done = false;
  readonly #starts: number[] = [];
  readonly #members = new Map<string, ByteRange>();
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The name being read, or the name of the value being read; null between members. */
  #name: string | null = null;
  #inName = false;
  #nameFrom = 0;

  /** Reads from `from` on. `offset`: the position of the chunk in the object. Returns where it stopped. */
  read(chunk: Uint8Array, from: number, offset: number): number {
    this.begun = true;
    let at = from;
    while (at < chunk.length && !this.done) {
      if (this.#inName) at = this.#readName(chunk, at);
      else if (this.#inString) at = this.#readString(chunk, at);
      else at = this.#readStructure(chunk, at, offset);
    }
    return at;
  }

  found(): TurnPlaces {
    // An empty list has a start and an end with nothing between them.
    const [first, last] = this.#starts;
    const none = this.#starts.length === 2 && last !== undefined && first !== undefined && last - first === 1;
    return { starts: Uint32Array.from(none ? [] : this.#starts), members: this.#members };
  }

  /** Reads up to the next string. Numbers, words and colons are skipped. */
  #readStructure(chunk: Uint8Array, from: number, offset: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte === QUOTE) {
        this.#beginString(offset + at);
        return at + 1;
      }
      if (byte === COMMA) this.#separate(offset + at);
      else if (byte === OPEN || byte === OPEN_LIST) this.#open(byte, offset + at);
      else if (byte === CLOSE || byte === CLOSE_LIST) this.#close(offset + at);
      if (this.done) return at + 1;
    }
    return chunk.length;
  }

  #beginString(position: number): void {
    if (this.#depth === 1 && this.#name === null) {
      this.#inName = true;
      this.#name = "";
      this.#nameFrom = position;
    } else {
      this.#inString = true;
    }
  }

  /** The platform chose the names: letters and underscores only. */
  #readName(chunk: Uint8Array, from: number): number {
    const quote = chunk.indexOf(QUOTE, from);
    const end = quote < 0 ? chunk.length : quote;
    this.#name += String.fromCharCode(...chunk.subarray(from, end));
    if (quote < 0) return end;
    this.#inName = false;
    return end + 1;
  }

  /** A quote ends a string if an even number of backslashes is before it. */
  #readString(chunk: Uint8Array, from: number): number {
    const quote = chunk.indexOf(QUOTE, from);
    const end = quote < 0 ? chunk.length : quote;
    let slashes = 0;
    while (end - slashes > from && chunk[end - slashes - 1] === BACKSLASH) slashes += 1;
    const carried = end - slashes === from && this.#escaped ? 1 : 0;
    const escaped = (slashes + carried) % 2 === 1;
    this.#escaped = quote < 0 && escaped;
    if (quote < 0) return end;
    this.#inString = escaped;
    return end + 1;
  }

  #open(byte: number, position: number): void {
    this.#depth += 1;
    if (this.#depth === 2 && byte === OPEN_LIST && this.#name === "turns") this.#starts.push(position + 1);
  }

  #separate(position: number): void {
    if (this.#depth === 2 && this.#name === "turns") this.#starts.push(position + 1);
    if (this.#depth === 1) this.#endMember(position);
  }

  #close(position: number): void {
    if (this.#depth === 2 && this.#name === "turns") this.#starts.push(position + 1);
    this.#depth -= 1;
    if (this.#depth > 0) return;
    this.#endMember(position);
    this.done = true;
  }

  #endMember(position: number): void {
    if (this.#name !== null) this.#members.set(this.#name, { from: this.#nameFrom, to: position });
    this.#name = null;
  }
}
