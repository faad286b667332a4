/**
 * Compiles packages/policy/assembly/gemm.ts to packages/policy/gemm.wasm, which is committed: running Rollcall needs no
 * compiler. `--check` writes nothing and fails if the file differs from the compiled source.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { main } from "assemblyscript/asc";

const FOLDER = join(import.meta.dirname, "../packages/policy");
const TARGET = join(FOLDER, "gemm.wasm");

async function compile(): Promise<Uint8Array> {
  const written = new Map<string, Uint8Array | string>();
  const options = ["-O3", "--noAssert", "--runtime", "stub", "--importMemory", "--enable", "simd"];
  const { error, stderr } = await main(["assembly/gemm.ts", ...options, "--outFile", "gemm.wasm"], {
    readFile: (name, base) => readIfThere(`${base}/${name}`),
    writeFile: (name, contents) => void written.set(name, contents),
  });
  const wasm = written.get("gemm.wasm");
  if (error !== null || !(wasm instanceof Uint8Array)) throw new Error(stderr.toString());
  return wasm;
}

/** The compiler also requests files that need not exist, and accepts null. */
function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

process.chdir(FOLDER);
const wasm = await compile();
if (!process.argv.includes("--check")) {
  writeFileSync(TARGET, wasm);
  console.log(`wrote packages/policy/gemm.wasm, ${wasm.byteLength} bytes`);
} else if (Buffer.compare(readFileSync(TARGET), wasm) !== 0) {
  console.error("packages/policy/gemm.wasm is not what its source compiles to: npm run build:gemm");
  process.exitCode = 1;
}
