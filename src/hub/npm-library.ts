/**
 * The package of this Rollcall itself, which is among the assets of the deployment (src/local/assets.ts). It is public.
 * It is read at each request: on one machine another command may replace it.
 */
import { LIBRARY_FOLDER, LIBRARY_LISTING, LIBRARY_TARBALL, LibraryListing } from "../contract/library-file.ts";

type Assets = Pick<Env, "ASSETS">;

/** Null if the deployment was made without it. */
export async function readLibrary(env: Assets): Promise<LibraryListing | null> {
  const reply = await fetchAsset(env, LIBRARY_LISTING);
  return reply === null ? null : LibraryListing.parse(await reply.json());
}

/** Null if the deployment was made without it. */
export function readLibraryTarball(env: Assets): Promise<Response | null> {
  return fetchAsset(env, LIBRARY_TARBALL);
}

async function fetchAsset({ ASSETS }: Assets, file: string): Promise<Response | null> {
  const reply = await ASSETS.fetch(`https://assets/${LIBRARY_FOLDER}/${file}`);
  if (reply.ok) return reply;
  await reply.body?.cancel();
  if (reply.status === 404) return null;
  throw new Error(`reading the asset ${file} gave ${reply.status}`);
}
