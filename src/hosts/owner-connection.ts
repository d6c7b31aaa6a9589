import { type AddressDeps, type OwnerAddresses, ownerAddress } from "./owner-address.ts";
import { WebhookConnection } from "./webhook-connection.ts";

/**
 * An owner's address that is posted to. It is resolved once, and every connection is to the address that was found then and
 * checked: a name that resolves to something else the next moment leads nowhere else. Redirects are not followed.
 */
export class OwnerConnection {
  private connection: WebhookConnection | null = null;

  constructor(
    private readonly url: string,
    private readonly deps: OwnerConnectionDeps,
  ) {}

  async post(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
  ): Promise<number | { readonly message: string }> {
    this.connection ??= await this.open();
    return this.connection?.post(headers, body) ?? { message: "the URL leads to no address on the internet" };
  }

  close(): void {
    this.connection?.close();
  }

  private async open(): Promise<WebhookConnection | null> {
    const { allowed, clock, onFault, ca } = this.deps;
    const address = await ownerAddress(this.url, allowed(), this.deps);
    const options = address === null ? null : { address, ...(ca !== undefined && { ca }) };
    return options && new WebhookConnection(this.url, clock, onFault, TIMEOUT_MS, options);
  }
}

interface OwnerConnectionDeps extends AddressDeps {
  /** As the configuration in force has it. */
  readonly allowed: () => OwnerAddresses;
  readonly onFault: (error: unknown) => void;
  readonly ca?: string;
}

const TIMEOUT_MS = 5_000;
