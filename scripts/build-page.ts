/** Builds the web page into dist/web, unless it is up to date. `wrangler deploy` runs this first. */

import { PACKAGE_ROOT } from "../src/local/package-root.ts";
import { bundlePage } from "../src/local/page-bundle.ts";

await bundlePage(PACKAGE_ROOT);
