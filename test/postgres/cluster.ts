import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuUsOf, freePort } from "../../bench/processes.ts";
import { giveToPostgres, PostgresServer, postgresMissing } from "./server.ts";

/**
 * A PostgreSQL of the tests' own: made with initdb in a folder that ends with them, on a free port of this
 * machine.
 */
export class Cluster {
  readonly port = freePort();
  private readonly folder = join(tmpdir(), `postgres-${crypto.randomUUID()}`);
  private server: PostgresServer;
  private replica: PostgresServer | null = null;
  replicaPort = 0;

  constructor(private readonly settings: readonly string[] = []) {
    this.server = this.on("data", this.port);
  }

  static async start(settings: readonly string[] = []): Promise<Cluster> {
    const cluster = new Cluster(settings);
    await cluster.create();
    return cluster;
  }

  /** Once, before anything else. */
  async create(): Promise<void> {
    mkdirSync(this.folder, { mode: 0o700 });
    await giveToPostgres(this.folder);
    await this.server.create();
    await this.begin();
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
    return cpuUsOf(this.server.pid);
  }

  /** Bytes written to its log of changes so far. */
  async written(): Promise<number> {
    const sql = new Bun.SQL(this.url(), { max: 1 });
    const [row] = await sql`SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes`;
    await sql.close();
    return Number(row.bytes);
  }

  begin(): Promise<void> {
    return this.server.start();
  }

  end(mode: "fast" | "immediate" = "fast"): Promise<void> {
    return this.server.end(mode);
  }

  /** From now on, a commit is only answered once a second server has it as well. */
  async replicate(): Promise<void> {
    this.replicaPort = freePort();
    this.replica = this.on("replica", this.replicaPort);
    await this.replica.follow("127.0.0.1", this.port);
    await this.replica.start();
    const sql = new Bun.SQL(this.url(), { max: 1 });
    await sql.unsafe("ALTER SYSTEM SET synchronous_standby_names = '*'").simple();
    await sql`SELECT pg_reload_conf()`;
    await sql.close();
  }

  beginReplica(): Promise<void> {
    return this.replica!.start();
  }

  /** Commits are no longer answered. */
  endReplica(): Promise<void> {
    return this.replica!.end("fast");
  }

  /** The first server is lost, and the second takes its place and its address. */
  async failOver(): Promise<void> {
    await this.end("immediate");
    await this.replica!.promote();
    await this.replica!.end("fast");
    this.server = this.on("replica", this.port);
    await this.begin();
  }

  async stop(): Promise<void> {
    for (const server of [this.server, this.replica]) await server?.end("immediate").catch(() => {});
    rmSync(this.folder, { recursive: true, force: true });
  }

  private on(data: string, port: number): PostgresServer {
    const location = { inside: [], listen: "127.0.0.1", port, settings: this.settings };
    return new PostgresServer(join(this.folder, data), location);
  }
}

/** False where PostgreSQL cannot run, and its tests are skipped; in CI they fail instead. */
export function hasPostgres(): boolean {
  const missing = postgresMissing();
  if (missing !== null) console.warn(`skipped: tests on PostgreSQL (${missing})`);
  return missing === null || process.env.CI !== undefined;
}
