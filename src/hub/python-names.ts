/**
 * Versions and file names of Python packages. The platform has one order of versions, that of semver, so a wheel has a
 * version that is valid in both: up to three numbers, and a pre-release. Equal versions of PEP 440 are equal there, too.
 */
import { exactVersion } from "./version-names.ts";

const NUMBER = "(0|[1-9]\\d*)";
const VERSION = new RegExp(`^${NUMBER}(?:\\.${NUMBER})?(?:\\.${NUMBER})?(?:(a|b|rc)${NUMBER})?$`);

/** `1.2` is `1.2.0`, and `1.2.0rc1` is `1.2.0-rc.1`. Null for other versions: with an epoch, post, dev or local part. */
export function versionOfPython(text: string): string | null {
  const [whole, major, minor = "0", patch = "0", phase, number] = VERSION.exec(text) ?? [];
  if (whole === undefined) return null;
  return exactVersion(`${major}.${minor}.${patch}${phase === undefined ? "" : `-${phase}.${number}`}`);
}

const WHEEL = /^([\w.]{1,100})-([\w.!+]{1,100})(?:-\d\w{0,40})?-[\w.]{1,40}-[\w.]{1,40}-[\w.]{1,100}\.whl$/;

/** Null if it is not the file name of a wheel. */
export function parseWheelName(file: string): { readonly name: string; readonly version: string } | null {
  const [, name, version] = WHEEL.exec(file) ?? [];
  return name === undefined || version === undefined ? null : { name, version };
}
