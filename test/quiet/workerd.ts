import { judge } from "./expected-errors.ts";

/**
 * Filters what workerd and Miniflare print about faults that tests cause: killed objects, models that disconnect,
 * alarms that are fired by hand. The test pool has no option for it and writes each message with one call, so those
 * calls are filtered here, only in test runs. Everything else is printed as before.
 */
const KNOWN = [
  /^uncaught exception; .*Network connection lost/,
  /^uncaught exception; .*(broken\.outputGateBroken; jsg\.Error: (killed|cut|dropped|upgraded|its storage is gone))/,
  /^uncaught exception; .*Error: (it is broken|gone|lost by the test|org\/org_\S+ is missing)/,
  /^uncaught exception; .*(The RPC receiver does not implement the method "ask")/,
  /^uncaught exception; .*Error: the store is away, \d/,
  // Environments that attack the platform.
  /^uncaught exception; .*(Maximum call stack size exceeded|return values are limited to 32MiB|Error: nobody)/,
  /^uncaught exception; .*(not permitted to access the internet|the call that this function came with has ended)/,
  /^uncaught exception; .*was created under a ROLLCALL_SECRET that this deployment does not have/,
  /^uncaught exception; .*Application called abortAllDurableObjects\(\)/,
  // Objects whose reads of D1 fail on purpose.
  /^uncaught exception; .*Error: Failed query: select .* from "(endpoints|organizations)" where /,
  // Its cause is printed next to it.
  /^uncaught exception; .*internal error; reference = \w+/,
  /^exception = \S+: failed: (broken\.outputGateBroken; )?jsg\.Error: (killed|its storage is gone)/,
  /^exception = workerd\/api\/unsafe\.c\+\+:\d+: failed: jsg\.Error: Application called abortAllDurableObjects\(\)\./,
  /^exception = workerd\/api\/streams\/[\w-]+\.c\+\+:\d+: disconnected: (pump|reader) canceled/,
  /^exception = rust\/worker\/ffi\.rs:\d+: disconnected: (Connection refused|Connection reset|HTTP body: error reading)/,
  /^e = rust\/worker\/ffi\.rs:\d+: failed: (failed to lookup address|connecting to \S+ is not allowed)/,
  /^NOSENTRY SQLite alarm (handler canceled with requestScheduledAlarm|overdue, running despite)/,
  /^console warning; message = Called \.text\(\) on an HTTP body which does not appear to be text/,
  /^\[mf:warn\] Moving message "\w+" on queue "[\w-]+" to dead letter queue/,
  /^Sourcemap for "\S+\/node_modules\/\S+" points to missing source files/,
  /^\[mf:error\] TypeError: Can't read from request stream because client disconnected/,
];
type Written = (error?: Error | null) => void;
const COLOURS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

export default function setup(): () => void {
  const undo = [process.stdout, process.stderr].map((stream) => {
    const { write } = stream;
    const print = write.bind(stream);
    stream.write = (chunk: Uint8Array | string, encoding?: BufferEncoding | Written, written?: Written) => {
      if (isKnown(chunk)) return true;
      return typeof encoding === "string" ? print(chunk, encoding, written) : print(chunk, encoding);
    };
    return () => {
      stream.write = write;
    };
  });
  return () => {
    for (const step of undo) step();
  };
}

function isKnown(chunk: Uint8Array | string): boolean {
  if (typeof chunk !== "string") return false;
  const text = chunk.replaceAll(COLOURS, "");
  return judge(text.trimEnd()) === "quiet" || KNOWN.some((kind) => kind.test(text));
}
