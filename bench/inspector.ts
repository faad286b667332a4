/** The part of the Chrome DevTools protocol that takes a CPU profile of the Worker's isolate. */
import { once } from "node:events";
import * as z from "zod";

const Frame = z.object({
  functionName: z.string(),
  url: z.string(),
  lineNumber: z.int(),
  columnNumber: z.int(),
});
const CpuProfile = z.object({
  nodes: z.array(z.object({ id: z.int(), callFrame: Frame, children: z.array(z.int()).optional() })),
  samples: z.array(z.int()),
});
export type CpuProfile = z.infer<typeof CpuProfile>;

const Target = z.object({ title: z.string(), webSocketDebuggerUrl: z.string() });
const Reply = z.object({
  id: z.int().optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
});

/** A shorter interval would disturb the measurement. */
const SAMPLE_EVERY_US = 1000;

export interface Inspector {
  /** The Worker it belongs to: ours, or one that stands in for a service. */
  readonly title: string;
  startProfile(): Promise<void>;
  stopProfile(): Promise<CpuProfile>;
  close(): void;
}

/** One for each Worker of the process whose name can be in a URL; the names of service stand-ins contain a "#". */
export async function openInspectors(port: number): Promise<Inspector[]> {
  const listing = await fetch(`http://127.0.0.1:${port}/json`);
  return await Promise.all(
    z
      .array(Target)
      .parse(await listing.json())
      .filter((target) => !target.webSocketDebuggerUrl.includes("#"))
      .map(openInspector),
  );
}

async function openInspector(target: z.infer<typeof Target>): Promise<Inspector> {
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await once(socket, "open");
  const waiting = new Map<number, (reply: z.infer<typeof Reply>) => void>();
  socket.addEventListener("message", ({ data }) => {
    const reply = Reply.parse(JSON.parse(String(data)));
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
  });
  const ask = async (method: string, params: object = {}) => {
    const id = waiting.size + 1;
    const { promise, resolve } = Promise.withResolvers<z.infer<typeof Reply>>();
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await promise;
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  return {
    title: target.title,
    async startProfile() {
      await ask("Profiler.enable");
      await ask("Profiler.setSamplingInterval", { interval: SAMPLE_EVERY_US });
      await ask("Profiler.start");
    },
    async stopProfile() {
      return z.object({ profile: CpuProfile }).parse(await ask("Profiler.stop")).profile;
    },
    close: () => socket.close(),
  };
}
