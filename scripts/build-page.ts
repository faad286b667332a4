/** Builds the page and the other assets into dist/web, unless they are up to date. `wrangler deploy` runs this first. */

import { bundleAssets } from "../src/local/assets.ts";
import { PACKAGE_ROOT } from "../src/local/package-root.ts";

await bundleAssets(PACKAGE_ROOT, (line) => process.stderr.write(`${line}\n`));
