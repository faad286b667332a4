/** The address of a split of a dataset on Hugging Face: `hf:owner/name@revision:split`. */
import { usageError } from "../exit.ts";

export interface DatasetAddress {
  /** `owner/name`, or `name` for an old dataset without an owner. */
  readonly repository: string;
  /** A branch, a tag or a commit; null: the newest. */
  readonly revision: string | null;
  readonly split: string | null;
}

const NAME = "[A-Za-z0-9][\\w.-]{0,95}";
const PATTERN = new RegExp(`^hf:((?:${NAME}/)?${NAME})(?:@([\\w./-]{1,200}))?(?::([\\w.-]{1,200}))?$`);

export function parseAddress(text: string): DatasetAddress {
  const [, repository, revision = null, split = null] = PATTERN.exec(text) ?? [];
  if (repository !== undefined) return { repository, revision, split };
  throw usageError(`${text}: is not hf:OWNER/NAME, hf:OWNER/NAME:SPLIT or hf:OWNER/NAME@REVISION:SPLIT`, "dataset");
}

export function addressText({ repository, revision, split }: DatasetAddress): string {
  return `hf:${repository}${revision === null ? "" : `@${revision}`}${split === null ? "" : `:${split}`}`;
}
