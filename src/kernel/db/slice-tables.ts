/**
 * The tables of slices that the kernel handles. The kernel does not name any slice: each one registers its tables
 * before any request is served (src/slices.ts).
 */
import type { SealedKind } from "../../contract/reseal.ts";
import type { Column, OrganizationTable, ProjectTable } from "./scoped.ts";

/** A table with rows of runs. */
export interface RunTable extends ProjectTable {
  readonly run_id: Column<string>;
}

/** Values that are stored sealed, by the id of their row. */
export interface SealedValues {
  readonly table: ProjectTable & { readonly id: Column<string>; readonly project_id: Column<string> };
  readonly column: Column<string | null>;
}

/** A table whose ids runs may have as `endpoint_id`, instead of those of `endpoints`. */
export interface NamedInPlace extends ProjectTable {
  readonly id: Column<string>;
  readonly name: Column<string | null>;
}

/** A table whose rows tell how many bytes are stored for them, and the id of the project that pays for these. */
export interface StoredTable {
  readonly table: OrganizationTable;
  readonly bytes: Column<number>;
  readonly paidBy: Column<string>;
}

export interface SliceTables {
  /** Tables whose rows are deleted with their project. */
  readonly ofProject?: readonly ProjectTable[];
  /** Tables whose rows are deleted with their organisation. */
  readonly ofOrganization?: readonly OrganizationTable[];
  /** Tables whose rows are deleted with their run. */
  readonly ofRun?: readonly RunTable[];
  /** While a project has a row in one of these, its daily cleanup runs. */
  readonly expiring?: readonly ProjectTable[];
  readonly stored?: readonly StoredTable[];
  readonly sealed?: Readonly<Partial<Record<SealedKind, SealedValues>>>;
  /** At most one slice has it. */
  readonly fleets?: NamedInPlace;
}

const registered: SliceTables[] = [];

/** Called once for each slice. */
export function registerTables(tables: SliceTables): void {
  registered.push(tables);
}

export function tablesOf<Kind extends "ofOrganization" | "ofProject" | "ofRun" | "expiring">(
  kind: Kind,
): readonly NonNullable<SliceTables[Kind]>[number][] {
  return registered.flatMap((tables) => tables[kind] ?? []);
}

export function storedTables(): readonly StoredTable[] {
  return registered.flatMap(({ stored }) => stored ?? []);
}

/** Null if no slice stores such values. */
export function sealedValues(kind: SealedKind): SealedValues | null {
  return registered.flatMap(({ sealed }) => sealed?.[kind] ?? [])[0] ?? null;
}

/** Null if there are no fleets. */
export function fleetTable(): NamedInPlace | null {
  return registered.flatMap(({ fleets }) => fleets ?? [])[0] ?? null;
}
