/** An OpenAPI document on stdin, on stdout with patterns that Python reads: names are of printable ASCII there. */
import { readFileSync } from "node:fs";

const PRINTABLE = "^[ -~]*$";
const plain = (name, value) => (name === "pattern" && /\\p\{/.test(value) ? PRINTABLE : value);

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8"), plain)));
