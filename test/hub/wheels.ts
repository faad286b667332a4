/** Wheels as Python's build tools make them. */

export interface Wheel {
  readonly file: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** `version`: as Python writes it. `metadata`: further lines of METADATA. */
export async function wheelOf(name: string, version: string, metadata: readonly string[] = []): Promise<Wheel> {
  const folder = `${name}-${version}.dist-info`;
  const head = ["Metadata-Version: 2.1", `Name: ${name}`, `Version: ${version}`, ...metadata];
  const files = {
    [`${name}/__init__.py`]: `VERSION = "${version}"\n`,
    [`${folder}/METADATA`]: `${head.join("\n")}\n\n# ${name}\n`,
    [`${folder}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: by-hand 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${folder}/RECORD`]: [
      `${name}/__init__.py,,`,
      `${folder}/METADATA,,`,
      `${folder}/WHEEL,,`,
      `${folder}/RECORD,,`,
      "",
    ].join("\n"),
  };
  return { file: `${name}-${version}-py3-none-any.whl`, bytes: await zipOf(files) };
}

/** A zip file with exactly these files, each compressed. */
export async function zipOf(files: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let at = 0;
  for (const [path, text] of Object.entries(files)) {
    const name = new TextEncoder().encode(path);
    const plain = new Uint8Array(new TextEncoder().encode(text));
    const packed = await deflated(plain);
    // Version, flags, method, time and date; then the checksum and the sizes.
    const shared = [...half(20), ...half(0x800), ...half(8), ...half(0), ...half(0x21), ...word(checksum(plain))];
    const sizes = [...word(packed.byteLength), ...word(plain.byteLength), ...half(name.byteLength), ...half(0)];
    const local = Uint8Array.from([...word(0x04034b50), ...shared, ...sizes, ...name]);
    const rest = [...half(0), ...half(0), ...half(0), ...word(0), ...word(at), ...name];
    directory.push(Uint8Array.from([...word(0x02014b50), ...half(20), ...shared, ...sizes, ...rest]));
    pieces.push(local, packed);
    at += local.byteLength + packed.byteLength;
  }
  const length = directory.reduce((sum, one) => sum + one.byteLength, 0);
  const count = half(directory.length);
  const end = [
    ...word(0x06054b50),
    ...half(0),
    ...half(0),
    ...count,
    ...count,
    ...word(length),
    ...word(at),
    ...half(0),
  ];
  return new Uint8Array(await new Blob([...pieces, ...directory, Uint8Array.from(end)]).arrayBuffer());
}

async function deflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

const half = (value: number) => [value & 255, (value >>> 8) & 255];
const word = (value: number) => [...half(value & 65_535), ...half(value >>> 16)];

/** CRC-32. */
function checksum(bytes: Uint8Array): number {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
