/**
 * Which platform a command works on: the one named by --platform or ROLLCALL_URL; else the one that runs on the state
 * directory; else one of its own, for the time of the command.
 */
import { answersHealthz } from "../local/healthz.ts";
import { readReadyFile, stateDirectory } from "../local/state-directory.ts";
import { RollcallClient } from "../sdk/client.ts";
import { boot } from "./boot.ts";
import { usageError } from "./exit.ts";

export interface Connection {
  readonly client: RollcallClient;
  readonly url: string;
  /** The model that plays the demo; a platform elsewhere has none. */
  readonly demoModelUrl: string | null;
  /** Who the platform belongs to: it may outlive the command, or not, or not even leave its state. */
  readonly kind: "remote" | "running" | "embedded" | "ephemeral";
  /** Resolves if the platform was ours and is gone. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
}

interface ConnectOptions {
  readonly platform: string | undefined;
  readonly ephemeral: boolean;
  readonly say: (line: string) => void;
}

const NEVER = new Promise<Error>(() => {
  // A platform of somebody else's is not watched: its calls fail when it goes.
});
const nothingToClose = () => Promise.resolve();

export async function connect(options: ConnectOptions): Promise<Connection> {
  const url = options.platform ?? process.env["ROLLCALL_URL"];
  if (url !== undefined && url !== "" && !options.ephemeral) return connectTo(url);
  const directory = stateDirectory(process.env);
  const running = options.ephemeral ? null : readReadyFile(directory);
  if (running !== null && (await answersHealthz(running.url))) {
    const client = new RollcallClient({ baseUrl: running.url, apiKey: running.key });
    return {
      client,
      url: running.url,
      demoModelUrl: running.demo_model_url,
      kind: "running",
      lost: NEVER,
      close: nothingToClose,
    };
  }
  return embed(options.ephemeral ? null : directory, options.say);
}

function connectTo(url: string): Connection {
  const apiKey = process.env["ROLLCALL_API_KEY"];
  if (apiKey === undefined || apiKey === "") {
    throw usageError(`ROLLCALL_API_KEY must hold a key of ${url}`, "ROLLCALL_API_KEY");
  }
  if (!URL.canParse(url)) throw usageError(`${url} is not a URL`, "platform");
  const client = new RollcallClient({ baseUrl: url, apiKey });
  return { client, url, demoModelUrl: null, kind: "remote", lost: NEVER, close: nothingToClose };
}

async function embed(directory: string | null, say: (line: string) => void): Promise<Connection> {
  const platform = await boot({ directory, say });
  return {
    client: new RollcallClient({ baseUrl: platform.url, apiKey: platform.key }),
    url: platform.url,
    demoModelUrl: platform.demoModelUrl,
    kind: directory === null ? "ephemeral" : "embedded",
    lost: platform.lost,
    close: () => platform.stop(),
  };
}
