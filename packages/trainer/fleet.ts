/**
 * The engines that sample for the run, kept on the trainer's weights.
 *
 * Invariants. Whatever a replica serves is asked of it, never assumed: one that was started anew has its first weights
 * again. Replicas are brought up to date one call at a time, the latest weights last. A replica out of reach holds up
 * nobody: it is told as soon as it answers.
 */
import { createHash } from "node:crypto";
import { bytesFromWeights } from "@rollcall/policy/weights";
import * as z from "zod";

const CALL_MS = 10_000;
const WeightInfo = z.object({ weight_version: z.string(), sha256: z.string() });

export interface Replica {
  readonly id: string;
  /** Where its weights are asked and set: `/weight_info` and `/update_weights` of its origin. */
  readonly url: string;
}

/** A replica serves these weights. */
export interface Applied {
  readonly state: "applied";
  readonly version: number;
  readonly replica: string;
  readonly sha256: string;
}

/** Weights as replicas take them, and their digest. */
export interface PackedWeights {
  readonly version: number;
  readonly sha256: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export function packWeights(version: number, weights: Float32Array): PackedWeights {
  const bytes = bytesFromWeights(weights);
  return { version, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

interface Latest extends PackedWeights {
  /** Replicas that the platform knows to serve it. */
  readonly reported: Set<string>;
}

export class Fleet {
  readonly #replicas: readonly Replica[];
  readonly #report: (applied: Applied) => Promise<unknown>;
  readonly #say: (line: string) => void;
  readonly #lost = new Set<string>();
  #latest: Latest | null = null;
  #syncing: Promise<unknown> = Promise.resolve();

  constructor(
    replicas: readonly Replica[],
    report: (applied: Applied) => Promise<unknown>,
    say: (line: string) => void,
  ) {
    this.#replicas = replicas;
    this.#report = report;
    this.#say = say;
  }

  /** From the next `sync` on. */
  set(packed: PackedWeights): void {
    this.#latest = { ...packed, reported: new Set() };
  }

  /**
   * Gives the latest weights to every replica that serves others, and reports it. Whether all of them answered. Rejects
   * as `report` does.
   */
  sync(): Promise<boolean> {
    const turn = this.#syncing.then(() => this.#syncAll());
    this.#syncing = turn.catch(() => undefined);
    return turn;
  }

  async #syncAll(): Promise<boolean> {
    const latest = this.#latest;
    if (latest === null) return true;
    const all = await Promise.all(this.#replicas.map((replica) => this.#sync(replica, latest)));
    return all.every((answered) => answered);
  }

  async #sync(replica: Replica, { version, sha256, bytes, reported }: Latest): Promise<boolean> {
    try {
      if (!(await serves(replica, version, sha256))) {
        await push(replica, version, bytes);
        reported.delete(replica.id);
      }
    } catch (error) {
      if (!this.#lost.has(replica.id)) this.#say(`${replica.id} gets no weights: ${reasonOf(error)}`);
      this.#lost.add(replica.id);
      return false;
    }
    if (this.#lost.delete(replica.id)) this.#say(`${replica.id} is back, with version ${version}`);
    if (!reported.has(replica.id)) {
      await this.#report({ state: "applied", version, replica: replica.id, sha256 });
      reported.add(replica.id);
    }
    return true;
  }
}

async function serves({ url }: Replica, version: number, sha256: string): Promise<boolean> {
  const reply = await fetch(new URL("/weight_info", url), { signal: AbortSignal.timeout(CALL_MS) });
  if (!reply.ok) throw new Error(`/weight_info: ${reply.status} ${await reply.text()}`);
  const info = WeightInfo.parse(await reply.json());
  return info.weight_version === String(version) && info.sha256 === sha256;
}

async function push({ url }: Replica, version: number, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const reply = await fetch(new URL("/update_weights", url), {
    method: "POST",
    headers: { "content-type": "application/octet-stream", "x-weight-version": String(version) },
    body,
    signal: AbortSignal.timeout(CALL_MS),
  });
  if (!reply.ok) throw new Error(`/update_weights: ${reply.status} ${await reply.text()}`);
  await reply.body?.cancel();
}

/** What `fetch` throws says why only in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${String(error.cause)}`;
}
