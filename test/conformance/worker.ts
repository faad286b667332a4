/** The drivers as a Worker: takes vectors, returns results. Only `npm run conformance` bundles it. */
import * as z from "zod";
import { runVectors } from "./run-vectors.ts";
import { Vector } from "./vector-file.ts";

export default {
  async fetch(request: Request): Promise<Response> {
    const vectors = z.array(Vector).parse(await request.json());
    return Response.json(await runVectors(vectors));
  },
} satisfies ExportedHandler;
