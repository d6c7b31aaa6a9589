import { readdirSync } from "node:fs";
import { run } from "../postgres/server.ts";

/**
 * A network of the tests' own: a namespace for each machine and one for the bridge that joins them, so that
 * the machine it runs on has no address, route or rule more than before. What a machine is to lose is dropped
 * where it would arrive (nftables), so a cut is silent, and can be of one direction only. It needs root.
 */
export class Network {
  /**
   * The address that machines can hand to each other. It is on an interface with a hardware address of its
   * own, which only one of them has up: nobody on the network has to learn anything.
   */
  readonly sharedAddress = `${SUBNET}.100`;

  /** One that is there already; `make` makes one. */
  constructor(
    /** Every namespace's name begins with it. */
    readonly name: string,
    private readonly machines: readonly string[],
    /** Machines that may hold the shared address. */
    private readonly sharing: readonly string[],
  ) {}

  static async make(machines: readonly string[], sharing: readonly string[] = []): Promise<Network> {
    await sweep();
    const network = new Network(
      `${PREFIX}${process.pid}-${crypto.randomUUID().slice(0, 8)}`,
      machines,
      sharing,
    );
    try {
      await network.raise();
    } catch (error) {
      await network.remove();
      throw error;
    }
    return network;
  }

  address(machine: string): string {
    return `${SUBNET}.${this.machines.indexOf(machine) + 1}`;
  }

  /** The command that runs another one on a machine. */
  on(machine: string): readonly string[] {
    return ["ip", "netns", "exec", this.namespace(machine)];
  }

  /** Nothing that `from` sends to `to` arrives any more; the other direction is as it was. */
  deafen(to: string, from: string): Promise<void> {
    return this.rule(to, `add element inet faults lost { ${this.addressesOf(from)} }`);
  }

  /** Nothing that `from` sends to `to` leaves it any more. */
  mute(from: string, to: string): Promise<void> {
    return this.rule(from, `add element inet faults unsent { ${this.addressesOf(to)} }`);
  }

  /** Neither receives anything from the other any more. */
  async cut(machine: string, other: string): Promise<void> {
    await this.deafen(machine, other);
    await this.mute(machine, other);
  }

  /** Nothing reaches the machine or leaves it any more. */
  isolate(machine: string): Promise<void> {
    return this.rule(
      machine,
      'add rule inet faults in iifname != "lo" drop\nadd rule inet faults out oifname != "lo" drop',
    );
  }

  /** So many percent of what reaches the machine or leaves it do not arrive. */
  lose(machine: string, percent: number): Promise<void> {
    return this.rule(
      machine,
      [
        `add rule inet faults in numgen random mod 100 < ${percent} drop`,
        `add rule inet faults out numgen random mod 100 < ${percent} drop`,
      ].join("\n"),
    );
  }

  /** What the machine sends waits in a line: so many kbit/s, of which half a second fits in the line. */
  slow(machine: string, kilobits: number): Promise<void> {
    const shape = ["tbf", "rate", `${kilobits}kbit`, "burst", "4kb", "latency", "500ms"];
    return run([...this.on(machine), "tc", "qdisc", "replace", "dev", "eth0", "root", ...shape]);
  }

  async heal(machine: string): Promise<void> {
    await this.rule(machine, RULES);
    await run([...this.on(machine), "tc", "qdisc", "del", "dev", "eth0", "root"]).catch(() => {});
  }

  async takeShared(machine: string): Promise<void> {
    const inside = this.namespace(machine);
    await run(["ip", "-n", inside, "address", "add", `${this.sharedAddress}/32`, "dev", "eth1"]);
    await run(["ip", "-n", inside, "link", "set", "eth1", "up"]);
  }

  async leaveShared(machine: string): Promise<void> {
    const inside = this.namespace(machine);
    await run(["ip", "-n", inside, "link", "set", "eth1", "down"]);
    await run(["ip", "-n", inside, "address", "flush", "dev", "eth1"]);
  }

  /** To all that runs on the machine. */
  signal(machine: string, signal: NodeJS.Signals): void {
    for (const pid of processesIn(this.namespace(machine))) send(pid, signal);
  }

  /** Ends whatever still runs in it. */
  remove(): Promise<void> {
    return removeAll(this.name);
  }

  private async raise(): Promise<void> {
    await run(["ip", "netns", "add", this.namespace(WIRE)]);
    await run(["ip", "-n", this.namespace(WIRE), "link", "add", "bridge", "type", "bridge"]);
    await run(["ip", "-n", this.namespace(WIRE), "link", "set", "bridge", "up"]);
    for (const machine of this.machines) {
      const inside = this.namespace(machine);
      await run(["ip", "netns", "add", inside]);
      await run(["ip", "-n", inside, "link", "set", "lo", "up"]);
      await this.plug(machine, "eth0", machine);
      await run(["ip", "-n", inside, "address", "add", `${this.address(machine)}/24`, "dev", "eth0"]);
      await run(["ip", "-n", inside, "link", "set", "eth0", "up"]);
      await this.rule(machine, RULES);
    }
    for (const machine of this.sharing) await this.addShared(machine);
  }

  private async addShared(machine: string): Promise<void> {
    const inside = this.namespace(machine);
    await this.plug(machine, "eth1", `${machine}-shared`);
    await run(["ip", "-n", inside, "link", "set", "eth1", "address", SHARED_MAC]);
    // Only the hardware address of the shared one is ever announced for it, and that when it comes up.
    const settings = {
      "all/arp_ignore": 1,
      "all/arp_announce": 2,
      "all/rp_filter": 0,
      "eth1/rp_filter": 0,
      "eth1/arp_notify": 1,
    };
    const lines = Object.entries(settings).map(
      ([key, value]) => `echo ${value} > /proc/sys/net/ipv4/conf/${key}`,
    );
    await run([...this.on(machine), "sh", "-ec", lines.join("\n")]);
  }

  private async plug(machine: string, device: string, port: string): Promise<void> {
    const ends = ["name", port, "type", "veth", "peer", "name", device, "netns", this.namespace(machine)];
    await run(["ip", "-n", this.namespace(WIRE), "link", "add", ...ends]);
    await run(["ip", "-n", this.namespace(WIRE), "link", "set", "dev", port, "master", "bridge", "up"]);
  }

  private rule(machine: string, rules: string): Promise<void> {
    return run([...this.on(machine), "nft", "-f", "-"], `${rules}\n`);
  }

  /** A machine that may hold the shared address is lost with it. */
  private addressesOf(machine: string): string {
    const own = this.address(machine);
    return this.sharing.includes(machine) ? `${own}, ${this.sharedAddress}` : own;
  }

  private namespace(machine: string): string {
    return `${this.name}-${machine}`;
  }
}

/** What the machine is missing for it; null when nothing is. */
export function networkMissing(): string | null {
  if (process.getuid?.() !== 0) return "it needs root";
  const missing = ["ip", "tc", "nft"].filter((tool) => Bun.which(tool) === null);
  if (missing.length > 0) return `${missing.join(", ")} not on the PATH (iproute2, nftables)`;
  const probe = `${PREFIX}probe-${process.pid}`;
  const added = Bun.spawnSync(["ip", "netns", "add", probe]);
  if (added.exitCode !== 0) return `no network namespaces here: ${added.stderr.toString().trim()}`;
  const ruled = Bun.spawnSync(["ip", "netns", "exec", probe, "nft", "-f", "-"], {
    stdin: Buffer.from(RULES),
  });
  Bun.spawnSync(["ip", "netns", "del", probe]);
  return ruled.exitCode === 0 ? null : `no nftables here: ${ruled.stderr.toString().trim()}`;
}

/** A private range, known to nobody outside. */
const SUBNET = "10.77.0";
const SHARED_MAC = "02:00:00:00:00:64";
const WIRE = "wire";
const PREFIX = "storm";
const NAMESPACES = "/run/netns";

/** As a machine is made, and healed. */
const RULES = `
add table inet faults
delete table inet faults
table inet faults {
  set lost { type ipv4_addr; }
  set unsent { type ipv4_addr; }
  chain in { type filter hook input priority 0; ip saddr @lost drop; }
  chain out { type filter hook output priority 0; ip daddr @unsent drop; }
}`;

/** What runs left behind that were killed themselves. */
async function sweep(): Promise<void> {
  const owners = new Set(namespaces().flatMap((name) => /^storm\d+(?=-)/.exec(name) ?? []));
  for (const owner of owners) if (!isAlive(Number(owner.slice(PREFIX.length)))) await removeAll(owner);
}

async function removeAll(network: string): Promise<void> {
  for (const name of namespaces().filter((name) => name.startsWith(`${network}-`))) {
    for (const pid of processesIn(name)) send(pid, "SIGKILL");
    await run(["ip", "netns", "del", name]);
  }
}

function namespaces(): string[] {
  try {
    return readdirSync(NAMESPACES);
  } catch {
    return [];
  }
}

function processesIn(namespace: string): number[] {
  const { stdout } = Bun.spawnSync(["ip", "netns", "pids", namespace]);
  return stdout.toString().split("\n").filter(Boolean).map(Number);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
