/**
 * Values of an object's storage as JSON. A value that JSON has is itself. Bytes, numbers that JSON lacks, and objects
 * with a member `$` are written as an object with the one member `$`. Objects store no other values: they throw.
 */

export function encodeStored(value: unknown): unknown {
  if (value === null || value === undefined || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : { $: ["number", String(value)] };
  if (Array.isArray(value)) return value.map(encodeStored);
  if (value instanceof ArrayBuffer) return { $: ["bytes", Buffer.from(value).toString("base64")] };
  if (typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype) {
    throw new TypeError(`a stored value cannot be copied: it is a ${Object.prototype.toString.call(value)}`);
  }
  const members = Object.entries(value).map(([name, member]): [string, unknown] => [name, encodeStored(member)]);
  return Object.hasOwn(value, "$") ? { $: ["object", members] } : Object.fromEntries(members);
}

export function decodeStored(value: unknown): unknown {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(decodeStored);
  if (!("$" in value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, decodeStored(member)]));
  }
  const [kind, encoded] = value.$ as [string, unknown];
  if (kind === "number") return Number(encoded);
  if (kind === "bytes") return new Uint8Array(Buffer.from(String(encoded), "base64")).buffer;
  return Object.fromEntries((encoded as [string, unknown][]).map(([name, member]) => [name, decodeStored(member)]));
}
