import { SingleFlight } from "../../../units/single-flight.ts";
import type { Token, X402Network } from "./network.ts";
import { type OpenParts, redactedParts } from "./redacted-parts.ts";

/** A network, once its node has reported its token. */
export class OpenNetwork {
  ready: ReadyNetwork | null = null;
  private readonly opening = new SingleFlight<"opening", ReadyNetwork | null>();

  constructor(
    readonly network: X402Network,
    private readonly open: (network: X402Network) => Promise<OpenParts>,
  ) {}

  /** Null where its node cannot be asked now. */
  prepare(): Promise<ReadyNetwork | null> {
    return this.ready === null ? this.opening.do("opening", () => this.read()) : Promise.resolve(this.ready);
  }

  private async read(): Promise<ReadyNetwork | null> {
    try {
      const parts = redactedParts(await this.open(this.network), this.network);
      this.ready = { ...parts, network: this.network, token: await parts.chain.token() };
    } catch {
      // It is asked again when somebody needs it, and `doctor` says why.
    }
    return this.ready;
  }
}

export interface ReadyNetwork extends OpenParts {
  readonly network: X402Network;
  readonly token: Token;
}
