import { Webhook } from "standardwebhooks";
import { until } from "./until.ts";

/** An endpoint on the loopback interface that verifies what it is sent as its owner would. */
export class WebhookEndpoint {
  /** In the order of their arrival, those that came twice among them. */
  readonly received: ReceivedEvent[] = [];
  /** Statuses of the next answers, before it takes events again. */
  readonly refusals: number[] = [];
  readonly secret = `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64")}`;
  private readonly server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const text = await request.text();
      if (this.verifier !== null) await this.verify(this.verifier, text, request.headers);
      const body = new Webhook(this.secret).verify(text, Object.fromEntries(request.headers)) as EventBody;
      const refusal = this.refusals.shift();
      if (refusal !== undefined)
        return new Response("no", { status: refusal, headers: { location: "/taken" } });
      this.received.push({ id: request.headers.get("webhook-id")!, ...body });
      return new Response("taken");
    },
  });

  /** `verifier`: the address of a program that verifies each delivery as well. */
  constructor(private readonly verifier: string | null = null) {}

  private async verify(verifier: string, body: string, headers: Headers): Promise<void> {
    const signed = Object.fromEntries([...headers].filter(([name]) => name.startsWith("webhook-")));
    const { ok } = await fetch(verifier, {
      method: "POST",
      body,
      headers: { ...signed, secret: this.secret },
    });
    if (!ok) throw new Error(`the verifier refused ${body}`);
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}/hook?of=ops`;
  }

  /** Events of this kind, once there are so many. */
  async events(kind: string, count: number): Promise<readonly ReceivedEvent[]> {
    await until(() => this.of(kind).length >= count);
    return this.of(kind);
  }

  of(kind: string): readonly ReceivedEvent[] {
    return this.received.filter(({ type }) => type === kind);
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }
}

interface EventBody {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type ReceivedEvent = EventBody & { readonly id: string };
