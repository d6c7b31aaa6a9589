/** The client's end of a WebSocket, as the server has it. */
export interface ServerSocket {
  /** Bytes sent; -1 when they wait for the client to take what was sent before; 0 when they were dropped. */
  send(text: string): number;
  ping(): number;
  close(code: number, reason: string): void;
  terminate(): void;
  cork<T>(callback: () => T): T;
}

/** Sends events, and knows when the client has taken them. */
export class ClientSocket {
  isGone = false;
  private taking: PromiseWithResolvers<boolean> | null = null;

  constructor(private readonly socket: ServerSocket) {}

  /** Whether the client is there; a promise of that while it does not take what it was sent. */
  get ready(): boolean | Promise<boolean> {
    return this.taking === null ? !this.isGone : this.taking.promise;
  }

  /** Whatever is sent at once goes on its way together. */
  send(texts: readonly string[]): void {
    if (this.isGone) return;
    this.socket.cork(() => {
      for (const text of texts) this.sendOne(text);
    });
  }

  /** An event that nobody waits for. Who takes none of them and causes more is not served any longer. */
  tell(text: string): void {
    if (this.taking === null) this.send([text]);
    else if (this.untaken++ < MOST_UNTAKEN) this.sendOne(text);
    else this.end(TOO_MUCH, "events were not taken");
  }

  private untaken = 0;

  ping(): void {
    if (!this.isGone && this.taking === null) this.socket.ping();
  }

  /** The client has taken what it was sent. */
  taken(): void {
    this.untaken = 0;
    this.settle(true);
  }

  end(code: number, reason: string): void {
    if (!this.isGone) this.socket.close(code, reason);
  }

  /** Without a word, because the client does not listen. */
  abandon(): void {
    if (!this.isGone) this.socket.terminate();
  }

  closed(): void {
    this.isGone = true;
    this.settle(false);
  }

  private sendOne(text: string): void {
    const sent = this.socket.send(text);
    if (sent === -1) this.taking ??= Promise.withResolvers<boolean>();
    // An event is missing, so what follows would mislead.
    else if (sent === 0) this.abandon();
  }

  private settle(isTaken: boolean): void {
    const { taking } = this;
    this.taking = null;
    taking?.resolve(isTaken);
  }
}

/** RFC 6455, section 7.4.1. */
export const GOING_AWAY = 1001;
export const TOO_MUCH = 1008;
const MOST_UNTAKEN = 64;
