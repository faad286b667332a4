/** Boots the fixture Worker in a process that a test can kill. Arguments: root, state directory, port. */
import { bootPlatform } from "../../src/local/platform.ts";

const [root, directory = null, port] = process.argv.slice(2);
const platform = await bootPlatform({
  root,
  directory,
  port: Number(port),
  log: (line) => process.stderr.write(`${line}\n`),
});
process.send?.({ url: platform.url, workerd: platform.workerdPid() });
