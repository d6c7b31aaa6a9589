import { privateKeyToAddress } from "viem/accounts";
import type { OperatorsPayment } from "../../../src/api/payments.ts";
import type { LocalChain } from "../../fakes/chain/chain.ts";
import { Random } from "../../sim/random.ts";
import { paidConfig, somewhere } from "../paid-gateway.ts";
import { ChainFaults } from "./chain-faults.ts";
import { Customer } from "./customer.ts";
import { FlakyNode } from "./flaky-node.ts";
import { allPayments, findings, unsettled } from "./judge.ts";
import { type Command, SET_UPS, type SetUp } from "./set-ups.ts";
import type { StormOptions, StormReport } from "./storm.ts";

/** A chain, its nodes, gateways and customers, and all that goes wrong between them. */
export class World {
  static async open(chain: LocalChain, options: StormOptions): Promise<World> {
    const gasKey = await chain.gasKey();
    await chain.client.setBalance({ address: privateKeyToAddress(gasKey), value: 10n ** 22n });
    const nodes: FlakyNode[] = [];
    const payTo = somewhere();
    const config = () => {
      const node = new FlakyNode(chain.rpc, 2 * BLOCKS_IN_EPOCH);
      nodes.push(node);
      const settledBy = `gas_key: "${gasKey}"`;
      const at = { rpc: node.url } as LocalChain;
      return `${paidConfig({ chain: at, payTo, host: "http://127.0.0.1:9", settledBy, network: ", wait_ms: 2000" })}\n`;
    };
    const setUp = await SET_UPS[options.setUp](config, options.isQuick ? QUICK : null);
    return new World(chain, options, setUp, nodes, payTo, gasKey);
  }

  private readonly random: Random;
  private readonly faults: ChainFaults;
  private readonly customers: Customer[] = [];
  private readonly counts = { kills: 0, silences: 0, lags: 0 };
  private readonly blockMs: number;
  /** Orders that may be made by now. */
  private tickets = 0;
  private orders = 0;
  private isStormy = true;
  private isOver = false;

  private constructor(
    private readonly chain: LocalChain,
    private readonly options: StormOptions,
    private readonly setUp: SetUp,
    private readonly nodes: readonly FlakyNode[],
    private readonly payTo: `0x${string}`,
    gasKey: `0x${string}`,
  ) {
    this.random = new Random(options.seed);
    this.faults = new ChainFaults(chain, gasKey, this.random);
    this.blockMs = options.isQuick ? 400 : 1_000;
  }

  async play(progress: (line: string) => void): Promise<StormReport> {
    progress("the gateways run");
    for (let index = 0; index < CUSTOMERS; index++) this.customers.push(await this.customer());
    await this.chain.minesAtOnce(false);
    await this.chain.mine(2 * BLOCKS_IN_EPOCH);
    const mining = this.mine();
    const ordering = this.customers.map((customer) => this.keepOrdering(customer));
    for (let round = 0; round < this.options.rounds; round++) {
      this.tickets = Math.ceil(((round + 1) * this.options.payments) / this.options.rounds);
      await this.round(round);
      await this.catchUp();
      progress(`round ${round + 1} of ${this.options.rounds}: ${this.orders} orders made`);
    }
    this.isStormy = false;
    this.faults.settle();
    await Promise.all(this.nodes.map((node) => node.heal()));
    progress("all faults are over");
    const slowestMs = await this.quiet(Promise.all(ordering));
    const found = await findings(
      () => this.setUp.any(),
      { chain: this.chain, payTo: this.payTo },
      this.customers,
    );
    this.isOver = true;
    await mining;
    return this.report(found, slowestMs);
  }

  async end(): Promise<void> {
    this.isOver = true;
    await this.setUp.end();
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  private async customer(): Promise<Customer> {
    const gateway = this.setUp.any();
    const { key, recovery_secret, balance_id } = await gateway.keyWith(0);
    await gateway.post("/v1/me/saved", { key }, recovery_secret);
    const wallet = await this.chain.wallet(10_000);
    return new Customer(
      wallet,
      key,
      balance_id,
      () => this.setUp.any(),
      () => this.isOver,
    );
  }

  private async mine(): Promise<void> {
    while (!this.isOver) {
      if (this.isStormy && this.random.chance(0.4)) await this.faults.disturb();
      await this.faults.mine();
      await Bun.sleep(this.blockMs);
    }
  }

  private async keepOrdering(customer: Customer): Promise<void> {
    while (!this.isOver && this.orders < this.options.payments) {
      if (this.orders < this.tickets) {
        this.orders += 1;
        await customer.order(ORDER_USD);
      } else await Bun.sleep(this.blockMs / 4);
    }
  }

  private async round(round: number): Promise<void> {
    const { random, blockMs, faults } = this;
    for (const [index, node] of this.nodes.entries())
      this.disturb(node, NODE_FATES[(round + index) % NODE_FATES.length]!);
    const aWhile = () => Bun.sleep(random.below(2 * blockMs));
    await aWhile();
    const faultsOfRound = [() => this.kill(round), () => faults.reorganise(DEEPEST_REORG)];
    if (random.chance(0.5)) faultsOfRound.reverse();
    for (const fault of faultsOfRound) {
      await fault();
      await aWhile();
    }
  }

  /** While many orders wait for the node, the next round does: it would meet no others. */
  private async catchUp(): Promise<void> {
    for (let pauses = 0; pauses < MAX_PAUSES && this.orders < this.tickets - CUSTOMERS; pauses++)
      await Bun.sleep(this.blockMs);
  }

  private async kill(round: number): Promise<void> {
    await this.setUp.kill(round);
    this.counts.kills += 1;
  }

  private disturb(node: FlakyNode, fate: (typeof NODE_FATES)[number]): void {
    const { random, counts } = this;
    node.beBehind(fate === "behind" ? 1 + random.below(MAX_BLOCKS_BEHIND) : 0);
    if (fate === "behind") counts.lags += 1;
    if (fate !== "silent") return;
    counts.silences += 1;
    const longestMs = this.options.isQuick ? 6_000 : random.pick([5_000, 10_000, 30_000]);
    node.beSilentFor(random.below(longestMs));
  }

  /** Resolves once all orders are answered and settled, with how long a payment took that was settled last. */
  private async quiet(ordered: Promise<unknown>): Promise<number> {
    const since = Date.now();
    let isOrdered = false;
    void ordered.then(() => {
      isOrdered = true;
    });
    let slowestMs = 0;
    const took = ({ created_at }: OperatorsPayment) => Date.now() - Math.max(since, Date.parse(created_at));
    for (;;) {
      const open = await unsettled(() => this.setUp.any(), await this.chain.arrivals(this.payTo));
      slowestMs = Math.max(slowestMs, ...open.map(took));
      if ((isOrdered && open.length === 0) || Date.now() - since > GIVE_UP_MS) return slowestMs;
      await Bun.sleep(this.blockMs);
    }
  }

  private async report(found: readonly string[], slowestMs: number): Promise<StormReport> {
    const { customers, chain, payTo, faults, counts } = this;
    const payments: Record<string, number> = {};
    for (const { state } of await allPayments(() => this.setUp.any()))
      payments[state] = (payments[state] ?? 0) + 1;
    return {
      findings: found,
      orders: customers.reduce((sum, { paid }) => sum + paid, 0),
      signed: customers.reduce((sum, { signed }) => sum + signed, 0),
      transfers: (await chain.arrivals(payTo)).length,
      payments,
      faults: { ...counts, ...faults.counts },
      slowestMs,
    };
  }
}

const QUICK: Command = ["test/payments/storm/quick-gateway.ts"];
const CUSTOMERS = 16;
const MAX_PAUSES = 20;
const ORDER_USD = 2;
export const BLOCKS_IN_EPOCH = 4;
/** The last two epochs are not final. */
const DEEPEST_REORG = 5;
const NODE_FATES = ["behind", "silent", "well", "behind", "well"] as const;
const MAX_BLOCKS_BEHIND = 30;
/** Longer than authorizations are valid: what is not settled by then never will be. */
const GIVE_UP_MS = 400_000;
