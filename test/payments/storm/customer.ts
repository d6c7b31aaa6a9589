import type { PrivateKeyAccount } from "viem/accounts";
import { signTransfer } from "../../fakes/chain/chain.ts";
import type { GatewayProcess } from "../../process/gateway.ts";
import { offerOf } from "../paid-gateway.ts";

/** Orders credit, and repeats each call until it is answered that the credit is there, whatever fails meanwhile. */
export class Customer {
  /** Authorizations that it has signed. */
  signed = 0;
  /** Orders that were answered with 201. */
  paid = 0;
  private attempts = 0;

  constructor(
    readonly wallet: PrivateKeyAccount,
    readonly key: string,
    readonly balanceId: string,
    private readonly any: () => GatewayProcess,
    private readonly isOver: () => boolean,
  ) {}

  async order(usd: number): Promise<void> {
    let header: string | null = null;
    this.attempts += 1;
    while (!this.isOver()) {
      const answer = await this.send(usd, header).catch(() => null);
      if (answer?.status === 201) {
        this.paid += 1;
        return;
      }
      if (answer?.status === 402) {
        // Nothing of it moves: another authorization is another order.
        if (header !== null) this.attempts += 1;
        header = await this.sign(answer);
        continue;
      }
      // Clients that have lost an answer repeat their call from its start: with the payment or without.
      if (answer !== null || this.signed % 2 === 0) header = null;
      await Bun.sleep(PAUSE_MS);
    }
  }

  private async sign(answer: Response): Promise<string> {
    const [accepted] = offerOf(answer)!.accepts as unknown as [Offered];
    const signed = await signTransfer(this.wallet, {
      from: this.wallet.address,
      to: accepted.payTo,
      value: accepted.amount,
      validAfter: "0",
      validBefore: `${Math.floor(Date.now() / 1_000) + accepted.maxTimeoutSeconds}`,
      nonce: `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`,
    });
    this.signed += 1;
    return Buffer.from(JSON.stringify({ x402Version: 2, accepted, payload: signed })).toString("base64");
  }

  private async send(usd: number, header: string | null): Promise<Response> {
    const response = await fetch(`${this.any().url}/v1/credits`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${this.key}`,
        "content-type": "application/json",
        "idempotency-key": `order ${this.attempts}`,
        ...(header === null ? {} : { "payment-signature": header }),
      },
      body: JSON.stringify({ amount_usd: usd }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.text();
    return response;
  }
}

interface Offered {
  readonly payTo: `0x${string}`;
  readonly amount: string;
  readonly maxTimeoutSeconds: number;
}

const PAUSE_MS = 200;
const TIMEOUT_MS = 20_000;
