/**
 * The error for a reply that refuses a request. The Hub names the reason in the header `X-Error-Code`. It answers 401
 * for a dataset that does not exist as well, so that the names of private datasets stay secret.
 */
import { CommandError, EXIT } from "../exit.ts";

interface Refusal {
  readonly status: number;
  /** `X-Error-Code`. */
  readonly code: string | null;
  /** `X-Error-Message`; may be empty. */
  readonly said: string;
  readonly hasToken: boolean;
  readonly endpoint: string;
  /** The dataset or the file that was asked for, as `hf:owner/name` and more. */
  readonly what: string;
}

export function refusalError(refusal: Refusal): CommandError {
  const message = messageOf(refusal);
  return new CommandError(EXIT.usage, {
    code: "hugging_face",
    message,
    param: "dataset",
    type: "invalid_request_error",
  });
}

function messageOf({ status, code, said, hasToken, endpoint, what }: Refusal): string {
  const page = `${endpoint}/datasets/${what.replace(/^hf:/, "").replace(/[@:].*$/, "")}`;
  const reason = said === "" ? "" : `: ${said}`;
  switch (code ?? status) {
    case "GatedRepo":
      return `${what}: is gated: accept its terms at ${page} ${hasToken ? "with the account of HF_TOKEN" : "and set HF_TOKEN to a token of that account"}`;
    case "RevisionNotFound":
      return `${what}: the revision does not exist; ${page} lists the revisions`;
    case "EntryNotFound":
      return `${what}: the file does not exist any more: run the command again`;
    case 401:
      return hasToken ? `HF_TOKEN: ${endpoint} refuses this token${reason}` : absent(what, endpoint, hasToken);
    case "RepoNotFound":
    case 404:
      return absent(what, endpoint, hasToken);
    case 403:
      return `${what}: HF_TOKEN may not read ${page}${reason}`;
    default:
      return `${what}: ${endpoint} answered ${status}${reason}`;
  }
}

function absent(what: string, endpoint: string, hasToken: boolean): string {
  const advice = hasToken ? "or HF_TOKEN may not read it" : "or is private: check the name, or set HF_TOKEN";
  return `${what}: does not exist at ${endpoint}, ${advice}`;
}
