/**
 * Whether the host of a URL is on the public internet. Addresses given by tenants are called from the platform's
 * network, where loopback, private ranges and a cloud's metadata address reply to every caller.
 *
 * Invariants. Takes the host as a URL parser writes it: lower case, IPv4 as four decimal numbers whatever its input
 * form, IPv6 in brackets. Refuses every host that is not known to be public. It only checks the name: it does not
 * resolve it.
 */

/**
 * First addresses of ranges outside of the public internet, and their prefix lengths: from IANA's special registry, and
 * Azure's.
 */
const SPECIAL_V4: readonly (readonly [first: string, bits: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // Azure: in a public range, but answered by the machine's host.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];
/** Names that resolve only inside private networks and clusters. A name without a dot does, too. */
const PRIVATE_NAMES =
  /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|svc|pod|consul|test|invalid)$/;
/** Names of cloud metadata services that look public. */
const METADATA_NAMES = /(^|\.)metadata\.(goog|tencentyun\.com)$/;

/** Whether a host is in the list, or below an entry that begins with `*.`. */
export function isAmong(hosts: readonly string[], host: string): boolean {
  const name = plain(host);
  return hosts.map(plain).some((one) => (one.startsWith("*.") ? name.endsWith(one.slice(1)) : name === one));
}

/** Host names are compared in lower case, without the final dot of the root. */
function plain(host: string): string {
  return host.toLowerCase().replace(/\.+$/, "");
}

export function isPublicHost(host: string): boolean {
  const name = plain(host);
  if (name.startsWith("[")) return isPublicV6(name.slice(1, -1));
  if (/^[\d.]+$/.test(name)) return isPublicV4(name);
  return name.includes(".") && !PRIVATE_NAMES.test(name) && !METADATA_NAMES.test(name);
}

function isPublicV4(address: string): boolean {
  const value = numberOf(address);
  return !SPECIAL_V4.some(([first, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(value / size) === Math.floor(numberOf(first) / size);
  });
}

function numberOf(address: string): number {
  return address.split(".").reduce((value, part) => value * 256 + Number(part), 0);
}

/** Global unicast is 2000::/3, without documentation addresses and the tunnels that embed an IPv4 address. */
function isPublicV6(address: string): boolean {
  const [first = 0, second = 0] = address.split(":").map((group) => Number.parseInt(group, 16) || 0);
  if (first < 0x2000 || first > 0x3fff) return false;
  const documentation = first === 0x3fff || (first === 0x2001 && second === 0x0db8);
  const tunnel = first === 0x2002 || (first === 0x2001 && second < 0x0200);
  return !documentation && !tunnel;
}
