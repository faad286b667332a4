/** SHA-256 (FIPS 180-4) of bytes that arrive in pieces: WebCrypto only takes them all at once. */
const BLOCK_BYTES = 64;

/** The first `count` primes. */
function primes(count: number): number[] {
  const found: number[] = [];
  for (let number = 2; found.length < count; number += 1) {
    if (found.every((prime) => number % prime !== 0)) found.push(number);
  }
  return found;
}

/** The first 32 bits of the fraction. */
function fraction(value: number): number {
  return Math.floor((value % 1) * 2 ** 32) | 0;
}

const PRIMES = primes(64);
const CONSTANTS = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));

export class Sha256 {
  readonly #state = Int32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
  readonly #words = new Int32Array(64);
  /** The beginning of a block: the first `#bytes % 64` bytes. */
  readonly #block = new Uint8Array(BLOCK_BYTES);
  #bytes = 0;

  update(bytes: Uint8Array): void {
    let at = 0;
    const held = this.#bytes % BLOCK_BYTES;
    this.#bytes += bytes.length;
    if (held > 0) {
      at = Math.min(BLOCK_BYTES - held, bytes.length);
      this.#block.set(bytes.subarray(0, at), held);
      if (held + at < BLOCK_BYTES) return;
      this.#mix(new DataView(this.#block.buffer), 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (; at + BLOCK_BYTES <= bytes.length; at += BLOCK_BYTES) this.#mix(view, at);
    this.#block.set(bytes.subarray(at));
  }

  /** In hex. Nothing can be added after it. */
  digest(): string {
    const bits = this.#bytes * 8;
    const zeros = (2 * BLOCK_BYTES - 9 - (this.#bytes % BLOCK_BYTES)) % BLOCK_BYTES;
    const end = new Uint8Array(1 + zeros + 8);
    end[0] = 0x80;
    const view = new DataView(end.buffer, 1 + zeros);
    view.setUint32(0, Math.floor(bits / 2 ** 32));
    view.setUint32(4, bits % 2 ** 32);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #mix(bytes: DataView, from: number): void {
    expand(this.#words, bytes, from);
    const state = this.#state;
    let [a, b, c, d] = [of(state, 0), of(state, 1), of(state, 2), of(state, 3)];
    let [e, f, g, h] = [of(state, 4), of(state, 5), of(state, 6), of(state, 7)];
    // Plain assignments: destructuring would make this loop much slower.
    for (let at = 0; at < 64; at += 1) {
      const choice = (e & f) ^ (~e & g);
      const sums = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const first = (h + sums + choice + of(CONSTANTS, at) + of(this.#words, at)) | 0;
      const majority = (a & b) ^ (a & c) ^ (b & c);
      const second = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + majority) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) state[at] = of(state, at) + value;
  }
}

/** The 64 words of a block, of which the first 16 are its bytes. */
function expand(words: Int32Array, bytes: DataView, from: number): void {
  for (let at = 0; at < 16; at += 1) words[at] = bytes.getInt32(from + at * 4);
  for (let at = 16; at < 64; at += 1) {
    const one = of(words, at - 15);
    const other = of(words, at - 2);
    const low = turned(one, 7) ^ turned(one, 18) ^ (one >>> 3);
    const high = turned(other, 17) ^ turned(other, 19) ^ (other >>> 10);
    words[at] = of(words, at - 16) + low + of(words, at - 7) + high;
  }
}

/** An index in range. */
function of(words: Int32Array, at: number): number {
  return words[at] ?? 0;
}

function turned(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}
