/** The client's end of a WebSocket, as the server has it. */
export interface ServerSocket {
  /** 0 when it was dropped. */
  send(text: string): number;
  /** Bytes that wait for the client to take what was sent before. */
  getBufferedAmount(): number;
  ping(): number;
  close(code: number, reason: string): void;
  terminate(): void;
  cork<T>(callback: () => T): T;
}

/** Sends events, and knows when the client has taken them. */
export class ClientSocket {
  isGone = false;
  private taking: PromiseWithResolvers<boolean> | null = null;
  /** Events that nobody waits for, since the client took anything. */
  private untaken = 0;

  constructor(private readonly socket: ServerSocket) {}

  /** Whether the client is there; a promise of that while it does not take what it was sent. */
  get ready(): boolean | Promise<boolean> {
    return this.taking === null ? !this.isGone : this.taking.promise;
  }

  /** It has not taken all of what it was sent. */
  get isBehind(): boolean {
    return this.taking !== null;
  }

  /** Whatever is sent at once goes on its way together. */
  send(texts: readonly string[]): void {
    if (this.isGone) return;
    const { socket } = this;
    const isSent = socket.cork(() => texts.every((text) => socket.send(text) !== 0));
    // An event is missing, so what follows would mislead.
    if (!isSent) this.abandon();
    // What `send` returns within a cork says nothing of it.
    else if (socket.getBufferedAmount() > 0) this.taking ??= Promise.withResolvers<boolean>();
  }

  /** An event that nobody waits for. Who takes none of them and causes more is not served any longer. */
  notify(text: string): void {
    if (this.taking !== null && ++this.untaken > MAX_UNTAKEN) this.abandon();
    else this.send([text]);
  }

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

  private settle(isTaken: boolean): void {
    const { taking } = this;
    this.taking = null;
    taking?.resolve(isTaken);
  }
}

/** RFC 6455, section 7.4.1. */
export const GOING_AWAY = 1001;
export const TOO_MUCH = 1008;
const MAX_UNTAKEN = 64;
