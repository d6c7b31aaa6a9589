import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/**
 * One PostgreSQL server: a folder of data, and the programs that make, run and end it. PostgreSQL refuses to
 * run as root, so there it runs as the user `postgres`, who has to own the folder above.
 */
export class PostgresServer {
  constructor(
    private readonly data: string,
    private readonly location: ServerLocation,
  ) {}

  create(): Promise<void> {
    const own = ["-A", "trust", "-U", "gateway", "-E", "UTF8", "--no-locale", "--no-sync"];
    return this.run("initdb", ["-D", this.data, ...own]);
  }

  /** Becomes a replica of the server there, which it follows once it is started. */
  follow(host: string, port: number): Promise<void> {
    const from = ["-h", host, "-p", String(port), "-U", "gateway"];
    return this.run("pg_basebackup", [...from, "-D", this.data, "-R", "-X", "stream", "-c", "fast"]);
  }

  start(): Promise<void> {
    const { port, listen, settings } = this.location;
    // Processes are killed in these tests, never the machine: nothing needs to reach the disk.
    const own = [
      "fsync=off",
      "max_connections=200",
      `listen_addresses=${listen}`,
      "unix_socket_directories=",
    ];
    const options = `-p ${port} ${[...own, ...settings].map((setting) => `-c ${setting}`).join(" ")}`;
    return this.control(["-l", `${this.data}.log`, "-o", options, "start"]);
  }

  /** `immediate` ends it as a crash would. */
  end(mode: "fast" | "immediate"): Promise<void> {
    return this.control(["-m", mode, "stop"]);
  }

  promote(): Promise<void> {
    return this.control(["promote"]);
  }

  /** The postmaster's. */
  get pid(): number {
    return Number(readFileSync(join(this.data, "postmaster.pid"), "utf8").split("\n")[0]);
  }

  private control(command: string[]): Promise<void> {
    return this.run("pg_ctl", ["-D", this.data, "-w", ...command]);
  }

  private run(name: string, options: string[]): Promise<void> {
    return run([...this.location.inside, ...unprivileged()!, join(toolFolder()!, name), ...options]);
  }
}

export interface ServerLocation {
  /** A command that runs others where the server is to be, such as in a network namespace. */
  readonly inside: readonly string[];
  readonly listen: string;
  readonly port: number;
  /** `name=value` */
  readonly settings: readonly string[];
}

/** Makes a folder one that PostgreSQL can use. */
export async function giveToPostgres(folder: string): Promise<void> {
  if (IS_ROOT) await run(["chown", "postgres", folder]);
}

const IS_ROOT = process.getuid?.() === 0;

/** Why there can be no server on this machine; null where there can. */
export function postgresMissing(): string | null {
  const tools = toolFolder();
  if (tools === null) return "it is not installed: apt-get install postgresql";
  const wrapper = unprivileged();
  if (wrapper === null)
    return `it refuses to run as root, and none of ${WRAPPERS.map(([tool]) => tool).join(", ")} is installed`;
  const probe = Bun.spawnSync([...wrapper, join(tools, "initdb"), "--version"], { cwd: tmpdir() });
  return probe.exitCode === 0 ? null : `it cannot be started: ${probe.stderr.toString().trim()}`;
}

/** What runs a command as a user that PostgreSQL accepts; null where nothing does. */
export function unprivileged(wrappers = WRAPPERS): readonly string[] | null {
  if (!IS_ROOT) return [];
  for (const [tool, ...options] of wrappers) {
    const found = Bun.which(tool, { PATH: `${process.env.PATH}:${SYSTEM}` });
    if (found !== null) return [found, ...options];
  }
  return null;
}

/** `su` takes a command for a shell. */
export const WRAPPERS: readonly (readonly [tool: string, ...options: string[]])[] = [
  ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"],
  ["runuser", "-u", "postgres", "--"],
  ["su", "-s", "/bin/sh", "-c", 'exec "$0" "$@"', "--", "postgres"],
];
/** Where these tools are, whatever the caller's PATH. */
const SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin";

export async function run(command: readonly string[], stdin = ""): Promise<void> {
  const child = Bun.spawn([...command], {
    cwd: tmpdir(),
    // With the mark by which a server that is left running is found.
    env: process.env,
    stdin: new Blob([stdin]),
    stdout: "ignore",
    stderr: "pipe",
  });
  if ((await child.exited) !== 0)
    throw new Error(`${command.join(" ")}: ${await new Response(child.stderr).text()}`);
}

/**
 * Debian keeps the server's programs out of the PATH; elsewhere they are on it. Null where there are none.
 */
function toolFolder(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => join(DEBIAN, version, "bin"));
  const onPath = Bun.which("pg_basebackup");
  if (onPath !== null) folders.push(dirname(realpathSync(onPath)));
  return folders.find((folder) => existsSync(join(folder, "initdb"))) ?? null;
}

const DEBIAN = "/usr/lib/postgresql";
