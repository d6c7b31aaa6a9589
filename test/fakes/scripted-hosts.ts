import {
  bytesOf,
  type HostBytes,
  type HostCall,
  type HostExchange,
  HostFault,
  type HostReply,
  type Read,
  type Transport,
} from "../../src/hosts/transport.ts";
import type { Clock } from "../../src/units/clock.ts";

/** What a scripted host does with one request, and when. */
export type Deed =
  /** A streamed chat answer of one token, its first token after so long. */
  | { readonly does: "answers"; readonly ms: number }
  /** The same answer, whole. */
  | { readonly does: "answers whole"; readonly ms: number }
  | {
      readonly does: "fails";
      readonly status: number;
      readonly ms: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** A stream's first token after so long, and that much later a connection that is lost. */
  | { readonly does: "breaks"; readonly ms: number; readonly afterMs: number }
  | { readonly does: "refuses" }
  | { readonly does: "nothing" };

/** Hosts without sockets, on whatever clock: for tests about when things happen. */
export class ScriptedHosts implements Transport {
  /** Host ids, in the order in which they were asked, and of those left, in which they were left. */
  readonly requests: string[] = [];
  readonly left: string[] = [];
  openExchanges = 0;

  constructor(
    private readonly clock: Clock,
    private readonly script: (host: string) => Deed,
  ) {}

  open({ to: { host } }: HostCall): HostExchange {
    this.requests.push(host.id);
    this.openExchanges += 1;
    return new ScriptedExchange(this.clock, this.script(host.id), () => {
      this.left.push(host.id);
      this.openExchanges -= 1;
    });
  }

  close(): void {}
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const TOKEN = encode(
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n',
);
const WHOLE = encode(
  '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}',
);
const FAILURE = '{"error":{"message":"no"}}';
const CANCELLED = new HostFault("cancelled", "cancelled");
const RESET = new HostFault("reset", "reset");

class ScriptedExchange implements HostExchange, HostReply {
  readonly reply: Promise<HostReply | HostFault>;
  readonly status: number;
  readonly headers: Map<string, string>;
  private answer!: (reply: HostReply | HostFault) => void;
  private readonly chunks: (Uint8Array | null)[];
  private over = false;

  constructor(
    private readonly clock: Clock,
    private readonly deed: Deed,
    private readonly onLeft: () => void,
  ) {
    const failure = deed.does === "fails" ? deed : null;
    this.status = failure?.status ?? 200;
    this.headers = new Map(Object.entries(failure?.headers ?? {}));
    const body = failure === null ? WHOLE : encode(failure.body ?? FAILURE);
    this.chunks = deed.does === "answers" || deed.does === "breaks" ? [TOKEN] : [body, null];
    this.reply = new Promise((resolve) => {
      this.answer = resolve;
    });
    if (deed.does === "refuses") this.answer(new HostFault("refused", "refused"));
    else if (deed.does === "nothing") return;
    else if (deed.ms === 0) this.answer(this);
    else clock.after(deed.ms, () => this.answer(this));
  }

  takeBody(): HostBytes {
    return bytesOf(this);
  }

  read(): Read | Promise<Read> {
    const { deed } = this;
    if (deed.does !== "breaks" || this.chunks.length > 0) return this.chunks.shift() ?? null;
    return new Promise((resolve) => this.clock.after(deed.afterMs, () => resolve(RESET)));
  }

  done(): void {
    this.cancel();
  }

  cancel(): void {
    if (this.over) return;
    this.over = true;
    this.onLeft();
    this.answer(CANCELLED);
  }
}
