/**
 * Whether a host of a URL is one that anybody may be sent to. What a tenant names is called from the platform's
 * network, where loopback, private ranges and a cloud's metadata address answer to whoever asks.
 *
 * Invariants. Takes the host as a URL parser writes it: lower case, IPv4 as four decimal numbers whatever form it was
 * given in, IPv6 in brackets. Refuses what it does not know for public. It reads the name only: where a public name
 * leads is for the network to decide.
 */

/**
 * First addresses of ranges that are not the public internet's, and their prefix lengths: IANA's special registry, and
 * Azure's.
 */
const SPECIAL_V4: readonly (readonly [first: string, bits: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // Azure: public by its number, and answered by the host a machine runs on.
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
/** Names that lead nowhere outside a network of one's own, a cluster's included; so does a name without a dot. */
const PRIVATE_NAMES =
  /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|svc|pod|consul|test|invalid)$/;
/** What a cloud's metadata service is called under a name that is public. */
const METADATA_NAMES = /(^|\.)metadata\.(goog|tencentyun\.com)$/;

/** Whether a host is one of these, or below one of those that begin with `*.`. */
export function isAmong(hosts: readonly string[], host: string): boolean {
  const name = plain(host);
  return hosts.map(plain).some((one) => (one.startsWith("*.") ? name.endsWith(one.slice(1)) : name === one));
}

/** Names are the same in upper case, and with the dot of the root. */
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

/**
 * Global unicast is 2000::/3; of it, documentation and the tunnels that carry an IPv4 address of their own are left
 * out.
 */
function isPublicV6(address: string): boolean {
  const [first = 0, second = 0] = address.split(":").map((group) => Number.parseInt(group, 16) || 0);
  if (first < 0x2000 || first > 0x3fff) return false;
  const documentation = first === 0x3fff || (first === 0x2001 && second === 0x0db8);
  const tunnel = first === 0x2002 || (first === 0x2001 && second < 0x0200);
  return !documentation && !tunnel;
}
