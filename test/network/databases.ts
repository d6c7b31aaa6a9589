import { rmSync } from "node:fs";
import { join } from "node:path";
import { giveToPostgres, PostgresServer } from "../postgres/server.ts";
import type { Network } from "./network.ts";

/**
 * PostgreSQL and its synchronous replica, on a machine each, and the address that belongs to whichever of
 * them leads. A commit is answered once both have it, except between a failover and the end of `rebuild`.
 */
export class Databases {
  private servers: { readonly [machine: string]: PostgresServer };
  /** The machine that leads, and the one that follows it; null while there is none. */
  leader: string;
  follower: string | null = null;
  /** Followers made so far. */
  private generation = 0;

  private constructor(
    private readonly network: Network,
    private readonly folder: string,
    private readonly machines: readonly [string, string],
  ) {
    this.leader = machines[0];
    this.servers = Object.fromEntries(machines.map((machine) => [machine, this.server(machine, 0)]));
  }

  static async start(
    network: Network,
    folder: string,
    machines: readonly [string, string],
  ): Promise<Databases> {
    const databases = new Databases(network, folder, machines);
    await giveToPostgres(folder);
    const { leading } = databases;
    await leading.create();
    await Bun.write(join(databases.dataOf(machines[0]), "pg_hba.conf"), EVERYBODY);
    await leading.start();
    await network.takeShared(machines[0]);
    await databases.rebuild();
    return databases;
  }

  get url(): string {
    return `postgres://gateway@${this.network.sharedAddress}:${PORT}/postgres`;
  }

  /** The server on the leading machine. */
  get leading(): PostgresServer {
    return this.servers[this.leader]!;
  }

  /**
   * The one that follows takes the place and the address of the one that leads, which may be gone, or still
   * there and cut off. Commits that only the old one has were answered to nobody.
   */
  async failOver(): Promise<void> {
    // Nobody may reach the old one any more before the next one leads.
    await this.network.leaveShared(this.leader);
    const next = this.follower!;
    await this.servers[next]!.promote();
    this.leader = next;
    this.follower = null;
    await this.commitWith(null);
    await this.network.takeShared(next);
  }

  /** Makes a new follower, on the machine that has none, and waits until it has everything. */
  async rebuild(): Promise<void> {
    const machine = this.machines.find((one) => one !== this.leader)!;
    await this.servers[machine]!.end("immediate").catch(() => {});
    rmSync(this.dataOf(machine, this.generation), { recursive: true, force: true });
    this.generation += 1;
    const server = this.server(machine, this.generation);
    await server.follow(this.network.address(this.leader), PORT);
    await server.start();
    this.servers = { ...this.servers, [machine]: server };
    await this.commitWith("*");
    // What was committed alone came before this in the log, so both have it when this is answered.
    await this.execute(
      "CREATE TABLE IF NOT EXISTS both_have_it (one INT); INSERT INTO both_have_it VALUES (1)",
    );
    this.follower = machine;
  }

  async stop(): Promise<void> {
    for (const server of Object.values(this.servers)) await server.end("immediate").catch(() => {});
  }

  private async commitWith(followers: "*" | null): Promise<void> {
    await this.execute(`ALTER SYSTEM SET synchronous_standby_names = '${followers ?? ""}'`);
    await this.execute("SELECT pg_reload_conf()");
  }

  private async execute(statement: string): Promise<void> {
    const sql = new Bun.SQL(`postgres://gateway@${this.network.address(this.leader)}:${PORT}/postgres`, {
      max: 1,
    });
    await sql.unsafe(statement).simple();
    await sql.close();
  }

  private server(machine: string, generation: number): PostgresServer {
    const location = { inside: this.network.on(machine), listen: "*", port: PORT, settings: SETTINGS };
    return new PostgresServer(this.dataOf(machine, generation), location);
  }

  private dataOf(machine: string, generation = 0): string {
    return join(this.folder, `${machine}-${generation}`);
  }
}

const PORT = 5432;
const EVERYBODY = "local all all trust\nhost all all all trust\nhost replication all all trust\n";
/** A follower that is cut off is noticed, and one that was is followed again soon. */
const SETTINGS = ["wal_sender_timeout=3s", "wal_receiver_timeout=3s", "wal_retrieve_retry_interval=500ms"];
