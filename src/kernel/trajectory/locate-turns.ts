/**
 * Where the parts of a stored trajectory are, found in one pass over its bytes: so a page of a long one is read without
 * the rest of it. The bytes are what `JSON.stringify` wrote, in UTF-8 and without white space; a segment has a line of
 * them for each of its rollouts.
 */

/** Half-open, in bytes of the object of R2. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export interface TurnPlaces {
  /** Where each turn begins, and where one more would: a turn ends one byte, its comma, before the next. */
  readonly starts: Uint32Array;
  /** Members of the trajectory by name, from the quote of the name to the end of the value. */
  readonly members: ReadonlyMap<string, ByteRange>;
}

/** `missing`: the bytes ended before the trajectory did. `empty`: the rollout left none. */
type Found = TurnPlaces | "missing" | "empty";

const [QUOTE, BACKSLASH, COMMA, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, NEWLINE] = [
  ...new TextEncoder().encode('"\\,{}[]\n'),
] as [number, number, number, number, number, number, number, number];

/** `before`: the text in front of the trajectory, at the start of its line; "" where it is all of the object. */
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
  /** How many of these bytes this line began with; -1 where it is another line. */
  #matched = 0;

  constructor(wanted: Uint8Array) {
    this.#wanted = wanted;
  }

  /** Where the line goes on in this chunk, behind these bytes; the chunk's length where that is not in it. */
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
  /** The name that is being read, or whose value is; null between members. */
  #name: string | null = null;
  #inName = false;
  #nameFrom = 0;

  /** Reads from `at` on; `offset` is where the chunk begins in the object. Gives where it stopped. */
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
    // An empty list has a start and an end, and nothing between.
    const [first, last] = this.#starts;
    const none = this.#starts.length === 2 && last !== undefined && first !== undefined && last - first === 1;
    return { starts: Uint32Array.from(none ? [] : this.#starts), members: this.#members };
  }

  /** Up to the next string: numbers, words and colons say nothing. */
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

  /** Names are ours: letters and underscores. */
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
