/**
 * `rollcall completion`: a completion script for a shell, made from the table of commands. The script asks a running
 * platform for the ids of environments at the time of completion. It never starts a platform, and it does not wait for
 * one that does not answer.
 */
import { readReadyFile, stateDirectory } from "../../local/state-directory.ts";
import { type Command, type CommandSpec, command, type Flag, HELP_FLAG } from "../command-line.ts";
import { EXIT, usageError } from "../exit.ts";
import { LOCAL } from "../profiles.ts";
import { defaultProfile, type Elsewhere, namedPlatform } from "../which-platform.ts";

const ANSWERS_WITHIN_MS = 1000;

/** `others`: all other commands. */
export function completionCommand(others: readonly Command[]) {
  const self = command({
    name: "completion",
    takes: "<bash | zsh | fish>",
    argument: "shell",
    help: "print a shell completion script for commands, flags and environments",
    more: `bash:  source <(rollcall completion bash)          in ~/.bashrc
zsh:   source <(rollcall completion zsh)           in ~/.zshrc
fish:  rollcall completion fish | source           in ~/.config/fish/config.fish`,
    flags: { environments: { help: "print the ids of the environments instead, if a platform is running" } },
    async run(line) {
      if (line.on("environments")) {
        const ids = await environmentIds();
        process.stdout.write(ids.map((id) => `${id}\n`).join(""));
        return EXIT.good;
      }
      const shell = line.one("a shell: bash, zsh or fish");
      const script = SCRIPTS[shell];
      if (script === undefined) throw usageError(`no script for ${shell}: use bash, zsh or fish`);
      process.stdout.write(script([...others, self]));
      return EXIT.good;
    },
  });
  return self;
}

/** Empty if no platform answers: completion has no place to show an error. */
async function environmentIds(): Promise<string[]> {
  const platform = platformAtHand();
  if (platform === null) return [];
  const { RollcallClient } = await import("../../sdk/client.ts");
  const client = new RollcallClient(platform);
  const signal = AbortSignal.timeout(ANSWERS_WITHIN_MS);
  const page = await client.environments.list({}, { signal }).catch(() => ({ data: [] }));
  return page.data.map(({ id }) => id);
}

function platformAtHand(): { baseUrl: string; apiKey: string; project?: string | undefined } | null {
  const named = namedPlatform({});
  if (named !== null && named !== LOCAL) return clientOptions(named);
  const running = readReadyFile(stateDirectory(process.env));
  if (running !== null) return { baseUrl: running.url, apiKey: running.key };
  const profile = named === LOCAL ? null : defaultProfile({});
  return profile === null ? null : clientOptions(profile);
}

function clientOptions({ url: baseUrl, key: apiKey, project }: Elsewhere) {
  return { baseUrl, apiKey, project };
}

/** Runs at the time of completion. */
const ENVIRONMENTS = "$(rollcall completion --environments 2>/dev/null)";
/** This flag takes an environment's id in every command. */
const ENVIRONMENT_FLAG = "environment";
const FISH_ENVIRONMENTS = "(rollcall completion --environments 2>/dev/null)";
const SHELLS = "bash zsh fish";

type Commands = readonly CommandSpec[];

const SCRIPTS: Readonly<Record<string, (commands: Commands) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function bashScript(commands: Commands): string {
  return `# Completes rollcall in bash: source <(rollcall completion bash)
_rollcall() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}"
  local command="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command \${COMP_WORDS[i]}" in
      ${steps(commands).map(quoted).join("|")}) command="\${command:+$command }\${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done
  COMPREPLY=()
  case "$command:$prev" in
${commands.flatMap(bashValues).join("\n")}
  esac
  case "$command" in
${[...groupsOf(commands).map(bashGroup), ...commands.map(bashCommand)].join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _rollcall rollcall
`;
}

/** zsh runs bash's completions without changes. */
export function zshScript(commands: Commands): string {
  const start = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n";
  return start + bashScript(commands);
}

export function fishScript(commands: Commands): string {
  const groups = groupsOf(commands).flatMap((group) =>
    group.next.map(({ word, help }) => {
      const condition = group.name === "" ? "__fish_use_subcommand" : fishInGroup(group);
      return `complete -c rollcall -n '${condition}' -a ${word} -d ${fishQuoted(help)}`;
    }),
  );
  const lines = ["complete -c rollcall -f", ...groups, ...commands.flatMap(fishCommand)];
  return `# Completes rollcall in fish: rollcall completion fish | source\n${lines.join("\n")}\n`;
}

/** Words with the same predecessors: "" groups the first words of all commands, "run" groups the words after "run". */
interface Group {
  readonly name: string;
  readonly next: readonly { readonly word: string; readonly help: string }[];
}

function groupsOf(commands: Commands): Group[] {
  const names = new Set(commands.flatMap(({ name }) => name.split(" ").slice(0, -1)));
  const verbs = [...names].map((name) => {
    const mine = commands.filter((command) => command.name.startsWith(`${name} `));
    const next = mine.map((command) => ({ word: command.name.slice(name.length + 1), help: command.help }));
    return { name, next };
  });
  const alone = commands.filter(({ name }) => !name.includes(" "));
  const first = [
    ...alone.map(({ name, help }) => ({ word: name, help })),
    ...verbs.map(({ name, next }) => ({ word: name, help: next.map((it) => it.word).join(", ") })),
  ];
  return [{ name: "", next: first }, ...verbs];
}

/** Every pair of "words so far, next word" that leads to a command. */
function steps(commands: Commands): string[] {
  return groupsOf(commands).flatMap(({ name, next }) => next.map(({ word }) => `${name} ${word}`));
}

function bashGroup({ name, next }: Group): string {
  return `    ${quoted(name)}) words="${next.map(({ word }) => word).join(" ")}" ;;`;
}

function bashCommand({ name, flags, argument }: CommandSpec): string {
  const names = Object.keys({ ...flags, ...HELP_FLAG }).map((flag) => `--${flag}`);
  const start = `    ${quoted(name)}) words="${names.join(" ")}"`;
  if (argument === undefined) return `${start} ;;`;
  const offered = {
    environment: `words="${ENVIRONMENTS}"`,
    shell: `words="${SHELLS}"`,
    file: '{ COMPREPLY=($(compgen -f -- "$cur")); return; }',
  }[argument];
  return `${start}; [[ "$cur" == -* ]] || ${offered} ;;`;
}

/**
 * What may follow a flag that takes a value: one of a few words, an environment, or anything else; for that, files are
 * offered.
 */
function bashValues({ name, flags }: CommandSpec): string[] {
  const taking = Object.entries(flags).filter(([, { value }]) => value !== undefined);
  const chosen = taking.flatMap(([flag, { short, choices }]) => {
    if (choices === undefined) return [];
    const offer = `compgen -W "${choices.join(" ")}" -- "$cur"`;
    return [`    ${spellings(name, flag, short)}) COMPREPLY=($(${offer})); return ;;`];
  });
  const open = taking.filter(([, { choices }]) => choices === undefined);
  const offer = (flags: typeof open, what: string) => {
    const all = flags.map(([flag, { short }]) => spellings(name, flag, short)).join("|");
    return all === "" ? [] : [`    ${all}) COMPREPLY=($(compgen ${what} -- "$cur")); return ;;`];
  };
  const named = open.filter(([flag]) => flag === ENVIRONMENT_FLAG);
  const others = open.filter(([flag]) => flag !== ENVIRONMENT_FLAG);
  return [...chosen, ...offer(named, `-W "${ENVIRONMENTS}"`), ...offer(others, "-f")];
}

function spellings(command: string, flag: string, short: string | undefined): string {
  const long = quoted(`${command}:--${flag}`);
  return short === undefined ? long : `${long}|${quoted(`${command}:-${short}`)}`;
}

function quoted(text: string): string {
  return `"${text}"`;
}

function fishCommand({ name, flags, argument }: CommandSpec): string[] {
  const words = name.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
  const start = `complete -c rollcall -n '${words.join("; and ")}'`;
  const all = Object.entries<Flag>({ ...flags, ...HELP_FLAG });
  const lines = all.map(([flag, { short, value, choices, help }]) => {
    const letter = short === undefined ? "" : ` -s ${short}`;
    const words = flag === ENVIRONMENT_FLAG ? FISH_ENVIRONMENTS : choices?.join(" ");
    const offer = words === undefined ? " -F" : ` -a ${fishQuoted(words)}`;
    return `${start} -l ${flag}${letter}${value === undefined ? "" : ` -r${offer}`} -d ${fishQuoted(help)}`;
  });
  if (argument === undefined) return lines;
  const offered = { environment: `-a ${fishQuoted(FISH_ENVIRONMENTS)}`, shell: `-a '${SHELLS}'`, file: "-F" }[argument];
  return [...lines, `${start} ${offered}`];
}

function fishInGroup({ name, next }: Group): string {
  const verbs = next.map(({ word }) => word).join(" ");
  return `__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${verbs}`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("'", "\\'")}'`;
}
