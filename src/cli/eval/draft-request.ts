import type { EvalRequestInput } from "../../contract/eval-request.ts";

/** An incomplete run request: the endpoint and the number of examples may be missing. */
export type DraftRequest = Partial<EvalRequestInput>;
