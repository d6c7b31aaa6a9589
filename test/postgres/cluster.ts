import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cpuUsOf } from "../../bench/processes.ts";

/**
 * A PostgreSQL of the tests' own: made with initdb in a folder that ends with them, on a free port of this machine.
 * PostgreSQL refuses to run as root, so there it runs as Debian's `postgres`.
 */
export class Cluster {
  /** Of the data, within the folder. */
  private data = "data";

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
    const [postmaster] = readFileSync(join(this.folder, this.data, "postmaster.pid"), "utf8").split("\n");
    return cpuUsOf(Number(postmaster));
  }

  /** Bytes written to its log of changes so far. */
  async written(): Promise<number> {
    const sql = new Bun.SQL(this.url(), { max: 1 });
    const [row] = await sql`SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes`;
    await sql.close();
    return Number(row.bytes);
  }

  begin(): Promise<void> {
    return this.run(this.data, this.port);
  }

  /** `immediate` ends it as a crash would. */
  end(mode: "fast" | "immediate" = "fast"): Promise<void> {
    return this.control(this.data, ["-m", mode, "stop"]);
  }

  /** From now on, a commit is only answered once a second server has it as well. */
  async replicate(): Promise<void> {
    const from = ["-h", "127.0.0.1", "-p", String(this.port), "-U", "gateway"];
    await as([tool("pg_basebackup"), ...from, "-D", join(this.folder, "replica"), "-R", "-X", "stream"]);
    await this.run("replica", freePort());
    const sql = new Bun.SQL(this.url(), { max: 1 });
    await sql.unsafe("ALTER SYSTEM SET synchronous_standby_names = '*'").simple();
    await sql`SELECT pg_reload_conf()`;
    await sql.close();
  }

  /** The first server is lost, and the second takes its place and its address. */
  async failOver(): Promise<void> {
    await this.end("immediate");
    await this.control("replica", ["promote"]);
    await this.control("replica", ["-m", "fast", "stop"]);
    this.data = "replica";
    await this.begin();
  }

  async stop(): Promise<void> {
    for (const data of ["data", "replica"]) {
      await this.control(data, ["-m", "immediate", "stop"]).catch(() => {});
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private run(data: string, port: number): Promise<void> {
    // Processes are killed in these tests, never the machine: nothing needs to reach the disk.
    const settings = ["fsync=off", "listen_addresses=127.0.0.1", "max_connections=200", ...this.settings];
    const options = `-p ${port} -k ${this.folder} ${settings.map((setting) => `-c ${setting}`).join(" ")}`;
    return this.control(data, ["-l", join(this.folder, `${data}.log`), "-o", options, "start"]);
  }

  private control(data: string, command: string[]): Promise<void> {
    return as([tool("pg_ctl"), "-D", join(this.folder, data), "-w", ...command]);
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

/** Debian keeps the server's programs out of the PATH; elsewhere they are on it. */
function toolFolder(): string | null {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => join(DEBIAN, version, "bin"));
  const onPath = Bun.which("pg_basebackup");
  if (onPath !== null) folders.push(dirname(realpathSync(onPath)));
  return folders.find((folder) => existsSync(join(folder, "initdb"))) ?? null;
}

const DEBIAN = "/usr/lib/postgresql";

function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
