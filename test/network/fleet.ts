import { Folder, GatewayProcess } from "../process/gateway.ts";
import type { Network } from "./network.ts";

/**
 * A gateway on each of some machines, as an operator's supervisor runs them: one that ends is started again.
 */
export class Fleet {
  private readonly running = new Map<string, GatewayProcess>();
  private readonly folders: ReadonlyMap<string, Folder>;
  private isClosed = false;
  /** Output of gateways that ended by themselves. */
  readonly unexpectedEnds: string[] = [];
  slowestStartMs = 0;

  constructor(
    private readonly network: Network,
    readonly machines: readonly string[],
    config: (machine: string) => string,
  ) {
    this.folders = new Map(machines.map((machine) => [machine, new Folder(config(machine))]));
  }

  url(machine: string): string {
    return `http://${this.network.address(machine)}:${PORT}`;
  }

  /** Tries until it has started: without PostgreSQL none does. */
  async start(machine: string): Promise<void> {
    const folder = this.folders.get(machine)!;
    const location = { HOST: this.network.address(machine), PORT: String(PORT) };
    const inside = this.network.on(machine);
    while (!this.isClosed) {
      const beganMs = performance.now();
      const started = await GatewayProcess.start(folder, location, null, inside).catch(() => null);
      if (started === null) await Bun.sleep(START_AGAIN_MS);
      else {
        this.slowestStartMs = Math.max(this.slowestStartMs, performance.now() - beganMs);
        this.running.set(machine, started);
        void started.exited.then((code) => this.ended(machine, started, code));
        return;
      }
    }
  }

  async kill(machine: string): Promise<void> {
    const gateway = this.forget(machine);
    await gateway?.kill();
  }

  /** Asks it to end, as for an upgrade. */
  async drain(machine: string): Promise<void> {
    const gateway = this.forget(machine);
    await gateway?.stop();
  }

  signal(machine: string, signal: NodeJS.Signals): void {
    this.running.get(machine)?.signal(signal);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all(this.machines.map((machine) => this.kill(machine)));
    for (const folder of this.folders.values()) folder.remove();
  }

  /** From now on, the test decides what it does. */
  private forget(machine: string): GatewayProcess | undefined {
    const gateway = this.running.get(machine);
    this.running.delete(machine);
    return gateway;
  }

  private async ended(machine: string, gateway: GatewayProcess, code: number): Promise<void> {
    if (this.running.get(machine) !== gateway) return;
    const message = (await gateway.stderr()).trim().split("\n").slice(-3).join(" ");
    this.unexpectedEnds.push(`${machine}, code ${code}: ${message}`);
    this.running.delete(machine);
    await this.start(machine);
  }
}

const PORT = 8080;
const START_AGAIN_MS = 500;
