/** The files of the npm package of a published environment that the platform reads by name. */

/** One ES module with the environment, its packages and its copy of the library (src/local/environment-bundle.ts). */
export const CODE_FILE = "rollcall-environment.js";
/** Rows for an environment that has none of its own: it is validated with them. */
export const EXAMPLES_FILE = "examples.jsonl";
/** npm puts every file of a package below it. */
export const PACKAGE_FOLDER = "package/";
