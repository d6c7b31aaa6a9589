/** A chain's node behind a bad connection: for some time it does not answer, or it answers as it would have some blocks ago. */
export class FlakyNode {
  private blocksBehind = 0;
  private silence: Promise<void> | null = null;
  private readonly server: Bun.Server<undefined>;

  constructor(
    private readonly rpc: string,
    /** Behind the latest block, as the chain counts it. */
    private readonly blocksToFinality: number,
  ) {
    this.server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: async (request) => this.answer((await request.json()) as Call | Call[]),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  /** Calls wait until it is over; half of them have been carried out by then, and only the answer is late. */
  beSilentFor(ms: number): void {
    this.silence ??= Bun.sleep(ms).then(() => {
      this.silence = null;
    });
  }

  beBehind(blocks: number): void {
    this.blocksBehind = blocks;
  }

  /** Resolves once it answers, and with what the chain has now. */
  async heal(): Promise<void> {
    this.blocksBehind = 0;
    await this.silence;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  private calls = 0;

  private async answer(calls: Call | Call[]): Promise<Response> {
    const { silence } = this;
    const isCarriedOut = this.calls++ % 2 === 0;
    if (silence !== null && !isCarriedOut) await silence;
    const answer = Array.isArray(calls)
      ? await Promise.all(calls.map((call) => this.reply(call)))
      : await this.reply(calls);
    await silence;
    return Response.json(answer);
  }

  private async reply(call: Call): Promise<Reply> {
    if (this.blocksBehind === 0) return this.forward(call);
    const latest = Number((await this.forward({ ...call, method: "eth_blockNumber", params: [] })).result);
    const seen = Math.max(0, latest - this.blocksBehind);
    if (call.method === "eth_blockNumber") return { jsonrpc: "2.0", id: call.id, result: hex(seen) };
    return withoutLaterBlocks(await this.forward(this.asOf(seen, call)), call, seen);
  }

  private asOf(seen: number, { params, ...call }: Call): Call {
    const at = BLOCK_PARAMETER[call.method];
    if (call.method === "eth_getLogs") {
      const [filter] = params as [Record<string, string>];
      return { ...call, params: [{ ...filter, toBlock: hex(seen) }] };
    }
    if (at === undefined) return { ...call, params };
    const block = params[at] ?? "latest";
    const shown =
      block === "finalized"
        ? hex(Math.max(0, seen - this.blocksToFinality))
        : block === "latest" || block === "pending"
          ? hex(seen)
          : block;
    return { ...call, params: params.with(at, shown) };
  }

  private async forward(call: Call): Promise<Reply> {
    const response = await fetch(this.rpc, {
      method: "POST",
      body: JSON.stringify(call),
      headers: { "content-type": "application/json" },
    });
    return (await response.json()) as Reply;
  }
}

/** Transactions of blocks that the node does not have yet still wait for it. */
function withoutLaterBlocks(reply: Reply, { method }: Call, seen: number): Reply {
  const { result } = reply;
  if (!ABOUT_A_TRANSACTION.has(method) || result == null) return reply;
  const { blockNumber } = result as { blockNumber: string | null };
  if (blockNumber === null || Number(blockNumber) <= seen) return reply;
  const waiting = { ...result, blockNumber: null, blockHash: null, transactionIndex: null };
  return { ...reply, result: method === "eth_getTransactionReceipt" ? null : waiting };
}

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

interface Reply {
  readonly jsonrpc: "2.0";
  readonly id: number;
  readonly result?: unknown;
}

/** Where a method takes the block that it is asked about. */
const BLOCK_PARAMETER: Readonly<Record<string, number>> = {
  eth_getBlockByNumber: 0,
  eth_call: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
};
const ABOUT_A_TRANSACTION = new Set(["eth_getTransactionByHash", "eth_getTransactionReceipt"]);

const hex = (number: number): string => `0x${number.toString(16)}`;
