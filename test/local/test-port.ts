/** Ports for tests: a range per process, since several suites may run on one machine. */
export function testPort(offset: number): number {
  return 20_000 + (process.pid % 400) * 50 + offset;
}
