/**
 * Keeps the engines that sample for the run on the trainer's weights.
 *
 * Invariants: the version that a replica serves is always requested from it, never assumed: a restarted replica has its
 * first weights again. Replicas get one version at a time, the latest weights last. An unreachable replica delays no
 * other: it gets the weights as soon as it answers.
 */
import { createHash } from "node:crypto";
import { bytesFromWeights } from "@rollcall/policy/weights";
import * as z from "zod";

const CALL_MS = 10_000;
const WeightInfo = z.object({ weight_version: z.string(), sha256: z.string() });

export interface Replica {
  readonly id: string;
  /** Its weights are read from `/weight_info` and set by `/update_weights` of this URL's origin. */
  readonly url: string;
}

/** A replica now serves these weights. */
export interface Applied {
  readonly state: "applied";
  readonly version: number;
  readonly replica: string;
  readonly sha256: string;
}

/** Weights in the format that replicas take, and their digest. */
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
  /** Replicas that were reported to the platform as serving it. */
  readonly reported: Set<string>;
}

export class Fleet {
  readonly #replicas: readonly Replica[];
  readonly #report: (applied: Applied) => Promise<unknown>;
  readonly #log: (line: string) => void;
  readonly #lost = new Set<string>();
  #latest: Latest | null = null;
  #syncing: Promise<unknown> = Promise.resolve();

  constructor(
    replicas: readonly Replica[],
    report: (applied: Applied) => Promise<unknown>,
    log: (line: string) => void,
  ) {
    this.#replicas = replicas;
    this.#report = report;
    this.#log = log;
  }

  /** Takes effect at the next `sync`. */
  set(packed: PackedWeights): void {
    this.#latest = { ...packed, reported: new Set() };
  }

  /**
   * Sends the latest weights to every replica that serves others, and reports it. Resolves to whether all replicas
   * answered. Rejects as `report` does.
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
      if (!this.#lost.has(replica.id)) this.#log(`${replica.id} gets no weights: ${reasonOf(error)}`);
      this.#lost.add(replica.id);
      return false;
    }
    if (this.#lost.delete(replica.id)) this.#log(`${replica.id} is back, with version ${version}`);
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

/** The error of `fetch` has the reason only in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${String(error.cause)}`;
}
