import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuUsOf } from "../../bench/processes.ts";

/**
 * A PostgreSQL of the tests' own: made with initdb in a folder that ends with them, on a free port of this machine.
 * PostgreSQL refuses to run as root, so there it runs as Debian's `postgres`.
 */
export class Cluster {
  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly settings: readonly string[],
  ) {}

  static async start(settings: readonly string[] = []): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "postgres-"));
    if (IS_ROOT) await run(["chown", "postgres", folder]);
    await as([
      tool("initdb"),
      "-D",
      join(folder, "data"),
      "-A",
      "trust",
      "-U",
      "gateway",
      "-E",
      "UTF8",
      "--no-sync",
    ]);
    const cluster = new Cluster(folder, freePort(), settings);
    await cluster.begin();
    return cluster;
  }

  url(database = "postgres"): string {
    return `postgres://gateway@127.0.0.1:${this.port}/${database}`;
  }

  /** A database of its own for each test; returns its address. */
  async database(): Promise<string> {
    const name = `test_${crypto.randomUUID().replaceAll("-", "")}`;
    const sql = new Bun.SQL(this.url(), { max: 1 });
    await sql.unsafe(`CREATE DATABASE ${name}`);
    await sql.close();
    return this.url(name);
  }

  /** User and system time of its processes so far, µs. */
  cpuUs(): number {
    const [postmaster] = readFileSync(join(this.folder, "data/postmaster.pid"), "utf8").split("\n");
    return cpuUsOf(Number(postmaster));
  }

  /** Bytes written to its log of changes so far. */
  async written(): Promise<number> {
    const sql = new Bun.SQL(this.url(), { max: 1 });
    const [row] = await sql`SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes`;
    await sql.close();
    return Number(row.bytes);
  }

  async begin(): Promise<void> {
    // Processes are killed in these tests, never the machine: nothing needs to reach the disk.
    const settings = ["fsync=off", "listen_addresses=127.0.0.1", "max_connections=200", ...this.settings];
    const options = `-p ${this.port} -k ${this.folder} ${settings.map((setting) => `-c ${setting}`).join(" ")}`;
    await as([
      tool("pg_ctl"),
      "-D",
      join(this.folder, "data"),
      "-w",
      "-l",
      join(this.folder, "log"),
      "-o",
      options,
      "start",
    ]);
  }

  /** `immediate` ends it as a crash would. */
  async end(mode: "fast" | "immediate" = "fast"): Promise<void> {
    await as([tool("pg_ctl"), "-D", join(this.folder, "data"), "-w", "-m", mode, "stop"]);
  }

  async stop(): Promise<void> {
    await this.end("immediate").catch(() => {});
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** False where PostgreSQL is not installed, and its tests are skipped; in CI they fail instead. */
export const hasPostgres = (): boolean => toolFolder() !== null || process.env.CI !== undefined;

const IS_ROOT = process.getuid?.() === 0;

const as = (command: string[]): Promise<void> =>
  run(IS_ROOT ? ["runuser", "-u", "postgres", "--", ...command] : command);

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, { cwd: tmpdir(), stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  if ((await child.exited) !== 0)
    throw new Error(`${command.join(" ")}: ${await new Response(child.stderr).text()}`);
}

const tool = (name: string): string => join(toolFolder()!, name);

/** Debian keeps the server's programs out of the PATH. */
function toolFolder(): string | null {
  const found = Bun.which("initdb");
  if (found !== null) return join(found, "..");
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folder = versions
    .map((version) => join(DEBIAN, version, "bin"))
    .find((bin) => existsSync(join(bin, "initdb")));
  return folder ?? null;
}

const DEBIAN = "/usr/lib/postgresql";

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
