/** The rows of one member in the dataset of a group of environments: `first`, `first + step`, … */
export interface MemberRows {
  readonly first: number;
  readonly step: number;
  /** Null: they never end. */
  readonly length: number | null;
}
