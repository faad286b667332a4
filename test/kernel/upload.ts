/** Uploads through the HTTP interface, and what they leave in the stores. */
import { env } from "cloudflare:workers";
import { DatasetRow, DatasetView } from "../../src/contract/uploaded-dataset.ts";
import { folderOf } from "../../src/kernel/kit/names.ts";
import type { TestApi } from "./platform.ts";

export type Rows = readonly Record<string, unknown>[];

export function jsonLines(rows: Rows): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

export function upload(
  platform: TestApi,
  body: BodyInit,
  query = "",
  headers: Record<string, string> = {},
): Promise<Response> {
  return platform.ask(`/v1/datasets?${query}`, {
    method: "POST",
    body,
    headers: { "content-type": "application/jsonl", ...headers },
  });
}

/** The dataset that was created; throws if the upload was refused. */
export async function uploaded(platform: TestApi, body: BodyInit, query = ""): Promise<DatasetView> {
  const response = await upload(platform, body, query);
  if (response.status !== 201) throw new Error(await response.text());
  return DatasetView.parse(await response.json());
}

/** Not text(): the runtime warns about a content type that it does not recognise as text. */
export async function textOf(response: Response): Promise<string> {
  return new TextDecoder().decode(await response.arrayBuffer());
}

/** Every page of a dataset's rows, by following the links. */
export async function rowPages(platform: TestApi, id: string, query = ""): Promise<DatasetRow[][]> {
  const pages: DatasetRow[][] = [];
  let path: string | undefined = `/v1/datasets/${id}/rows?${query}`;
  while (path !== undefined) {
    const response = await platform.ask(path);
    const text = await textOf(response);
    if (response.status !== 200) throw new Error(text);
    const lines = text.split("\n").filter((line) => line !== "");
    pages.push(lines.map((line) => DatasetRow.parse(JSON.parse(line))));
    path = /<([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
  }
  return pages;
}

/** Keys of everything the tenant has uploaded, and ids of its datasets. */
export async function kept({ scope }: TestApi): Promise<{ keys: string[]; ids: unknown[] }> {
  const { objects } = await env.STORE.list({ prefix: `${folderOf(scope)}datasets/` });
  const rows = await env.DB.prepare("select id from datasets where org_id = ? order by id").bind(scope.orgId).all();
  return { keys: objects.map(({ key }) => key), ids: rows.results.map(({ id }) => id) };
}

export async function sha256(bytes: Uint8Array): Promise<string> {
  return Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("hex");
}
