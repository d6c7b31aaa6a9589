import type { GenerationCall } from "../generation/answer.ts";
import { clientBlocks } from "./client-blocks.ts";
import type { HttpDeps } from "./deps.ts";
import type { HttpExchange } from "./exchange.ts";

/** A generation request of the client at the other end of an exchange. */
export class ClientCall implements GenerationCall {
  readonly headers: Headers;
  readonly signal: AbortSignal;

  constructor(
    readonly secret: string,
    readonly body: Uint8Array,
    private readonly exchange: HttpExchange,
    private readonly deps: HttpDeps,
  ) {
    const { headers, signal } = exchange.request;
    this.headers = headers;
    this.signal = signal;
  }

  get isUnpaid(): boolean {
    return this.exchange.isUnpaid;
  }

  blocks(): readonly string[] {
    return clientBlocks(this.exchange, this.deps);
  }
}
