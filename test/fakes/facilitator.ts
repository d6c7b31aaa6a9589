import type { LocalChain, SignedTransfer } from "./chain/chain.ts";

/** What a facilitator does with a transfer that it is asked to settle, and what it answers. */
export type FacilitatorMood = (transfer: SignedTransfer, chain: LocalChain) => Promise<Response>;

const success = (transaction: string) =>
  Response.json({ success: true, transaction, network: "eip155:84532", payer: "0x0" });

export const MOODS = {
  honest: async (transfer, chain) => success(await chain.carryOut(transfer)),
  /** It says that all is well, and does nothing. */
  lying: async () => success(`0x${"ab".repeat(32)}`),
  /** It moves the money and does not get to say so. */
  "504 after it moved": async (transfer, chain) => {
    await chain.carryOut(transfer);
    return new Response("gateway timeout", { status: 504 });
  },
  /** As facilitators answer who asks for the same again. */
  "failure after it moved": async (transfer, chain) => {
    await chain.carryOut(transfer);
    return Response.json({ success: false, errorReason: "invalid_transaction_state", transaction: "" });
  },
  garbage: async () => new Response("<html>", { headers: { "content-type": "text/html" } }),
} as const satisfies Record<string, FacilitatorMood>;

/** A service that settles x402 payments, as well or as badly as the test wants. */
export class FakeFacilitator {
  mood: FacilitatorMood = MOODS.honest;
  requests = 0;
  /** The accounts that it says it sends from; null: it does not say. */
  signers: readonly string[] | null;
  private server;
  private readonly port;

  constructor(private readonly chain: LocalChain) {
    this.signers = [chain.sender];
    this.server = this.listen(0);
    this.port = this.server.port!;
  }

  /** From now on it carries nothing out until it is let go, and then all that it was asked for. */
  holdBack(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.mood = async (...transfer) => {
      await promise;
      return MOODS.honest(...transfer);
    };
    return resolve;
  }

  /** Comes back where it was. */
  restart(): void {
    this.server = this.listen(this.port);
  }

  private listen(port: number) {
    return Bun.serve({
      port,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        if (request.url.endsWith("/supported")) return this.supported();
        this.requests += 1;
        const { paymentPayload } = (await request.json()) as { paymentPayload: { payload: SignedTransfer } };
        return this.mood(paymentPayload.payload, this.chain).catch(() => new Response(null, { status: 500 }));
      },
    });
  }

  private supported(): Response {
    if (this.signers === null) return new Response("not found", { status: 404 });
    const kinds = [{ x402Version: 2, scheme: "exact", network: "eip155:84532" }];
    return Response.json({ kinds, extensions: [], signers: { "eip155:*": this.signers } });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/x402`;
  }

  async stop(): Promise<void> {
    await this.server.stop(true);
  }
}
