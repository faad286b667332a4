/**
 * What the kernel does with tables of slices, none of which it knows by name: each slice registers its own before anything is
 * served (src/slices.ts).
 */
import type { SealedKind } from "../../contract/reseal.ts";
import type { Column, OrganizationTable, ProjectTable } from "./scoped.ts";

/** Rows of a run. */
export interface RunTable extends ProjectTable {
  readonly run_id: Column<string>;
}

/** Values that are kept sealed, by the id of their row. */
export interface SealedValues {
  readonly table: ProjectTable & { readonly id: Column<string>; readonly project_id: Column<string> };
  readonly column: Column<string | null>;
}

/** Tables that runs may name in the place of `endpoints`. */
export interface NamedInPlace extends ProjectTable {
  readonly id: Column<string>;
  readonly name: Column<string | null>;
}

export interface SliceTables {
  /** Their rows go with their project. */
  readonly ofProject?: readonly ProjectTable[];
  /** Their rows go with their organisation. */
  readonly ofOrganization?: readonly OrganizationTable[];
  /** Their rows go with their run. */
  readonly ofRun?: readonly RunTable[];
  /** While a project has a row in one of them, it is swept every day. */
  readonly swept?: readonly ProjectTable[];
  readonly sealed?: Readonly<Partial<Record<SealedKind, SealedValues>>>;
  /** Of one slice at most. */
  readonly fleets?: NamedInPlace;
}

const registered: SliceTables[] = [];

/** Once for each slice. */
export function registerTables(tables: SliceTables): void {
  registered.push(tables);
}

export function tablesOf<Kind extends "ofOrganization" | "ofProject" | "ofRun" | "swept">(
  kind: Kind,
): readonly NonNullable<SliceTables[Kind]>[number][] {
  return registered.flatMap((tables) => tables[kind] ?? []);
}

/** Null: no slice keeps such values. */
export function sealedValues(kind: SealedKind): SealedValues | null {
  return registered.flatMap(({ sealed }) => sealed?.[kind] ?? [])[0] ?? null;
}

/** Null: there are no fleets. */
export function fleetTable(): NamedInPlace | null {
  return registered.flatMap(({ fleets }) => fleets ?? [])[0] ?? null;
}
