import type { ChangeAuthor } from "../customers/changes/change.ts";
import type { KnownOperator } from "../customers/operators/operator.ts";
import { type Blocks, blocksOf, plain } from "../ledger/limits/address.ts";
import type { Release } from "../units/byte-budget.ts";
import type { Refusal } from "../units/errors/refusal.ts";
import { newReceiptId, type ReceiptId } from "../units/id.ts";
import type { HttpDeps } from "./deps.ts";
import type { ClientConnection, IdleTimeout } from "./idle-timeout.ts";
import type { OpenConnection } from "./websocket/open-sockets.ts";

/** A request under way. */
export class HttpExchange implements ClientConnection {
  isExempt = false;
  /**
   * Authenticates the sender again: a refusal if the credential has ended meanwhile, because a body takes as long as its
   * sender likes. Null where no credential was shown.
   */
  reauthenticate: (() => Promise<object | Refusal>) | null = null;
  /** Who changes what this request changes; null before a credential was looked at. */
  author: ChangeAuthor | null = null;
  /** Whose admin token was shown. */
  operator: KnownOperator | null = null;
  /** The body is large, and its sender could not pay for so much. */
  isUnpaid = false;
  private id: ReceiptId | null = null;
  private room: Release | null = null;

  constructor(
    readonly request: Request,
    readonly params: Readonly<Record<string, string>>,
    private readonly server: Bun.Server<unknown> | null,
    readonly deps: HttpDeps,
    private readonly idleTimeout: IdleTimeout,
  ) {}

  /** Made on first use, because generation requests make their own. */
  get receipt(): ReceiptId {
    const { clock, random } = this.deps;
    this.id ??= newReceiptId(clock.now(), random);
    return this.id;
  }

  /** Aborts when the client has left. */
  get signal(): AbortSignal {
    return this.request.signal;
  }

  /**
   * The client's network, as throttles and allowances count it. Somebody who forwards addresses without being
   * trusted is reported: if that is the operator's own proxy, all clients behind it count as one.
   */
  blocks(): Blocks {
    const { request, deps } = this;
    const { trustedProxies } = deps.config.settings;
    // Null when the other end of the connection is gone.
    const address = this.server?.requestIP(request)?.address ?? null;
    if (address !== null && request.headers.has("x-forwarded-for") && !trustedProxies.has(plain(address)))
      deps.untrustedProxies.note(plain(address), request);
    return blocksOf(address, request.headers, trustedProxies);
  }

  /** The client waits for the gateway; see IdleTimeout. */
  gatewaysTurn(): void {
    this.idleTimeout.begin(this);
  }

  /**
   * The client has to take bytes or send its next request. A caller of `gatewaysTurn` must call this when
   * done.
   */
  clientsTurn(): void {
    this.idleTimeout.end(this);
  }

  /** Keeps the memory for the body until `giveRoomBack`. */
  keepRoom(release: Release): void {
    this.room = release;
  }

  /** The body is no longer needed. Does nothing if no room was taken. */
  giveRoomBack(): void {
    this.room?.();
    this.room = null;
  }

  /** Makes the connection a WebSocket; false where the request is none for that. */
  upgrade(connection: OpenConnection): boolean {
    return this.server?.upgrade(this.request, { data: connection }) ?? false;
  }

  setTimeout(seconds: number): void {
    this.server?.timeout(this.request, seconds);
  }
}

export const pathOf = ({ url }: Request): string => PARTS.exec(url)![1]!;

export const queryOf = ({ url }: Request): URLSearchParams => new URLSearchParams(PARTS.exec(url)![2]);

/**
 * Path and query. Not read with `URL`, which throws where the host is no host: clients may send any, or none
 * at all, and then the URL is a path.
 */
const PARTS = /^(?:https?:\/\/[^/]*)?([^?#]*)(?:\?([^#]*))?/;
