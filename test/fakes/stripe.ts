import { Stripe } from "stripe";

/**
 * Stripe on a socket, as far as card payments need it: sessions, their charges, refunds and disputes, made once for
 * each idempotency key, and events signed as Stripe signs them. Tests say what the payer, the bank and the operator do.
 */
export class FakeStripe {
  private readonly sessions = new Map<string, FakeSession>();
  private readonly answered = new Map<string, { readonly form: string; readonly body: object }>();
  private readonly server: Bun.Server<unknown>;
  readonly calls: string[] = [];
  /** What it can be asked for, whether it was delivered or not. */
  readonly events: { readonly type: string; readonly object: object }[] = [];
  /** Answers nothing but errors. */
  isDown = false;
  /** Says this to everything, and does nothing. */
  refusal: string | null = null;
  /** Does what is asked, and breaks off before it answers. */
  losesAnswers = false;
  /** Nothing is answered before it resolves. */
  gate: Promise<void> = Promise.resolve();
  /** That were asked at a time. */
  most = 0;
  private requests = 0;
  private made = 0;

  constructor() {
    this.server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => this.counted(request) });
  }

  private async counted(request: Request): Promise<Response> {
    this.most = Math.max(this.most, ++this.requests);
    await this.gate;
    this.requests -= 1;
    return this.answer(request);
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  get opened(): readonly FakeSession[] {
    return [...this.sessions.values()];
  }

  /** The payer enters a card and pays; `cents` where another amount than asked for arrives. */
  pay(session: FakeSession, cents = session.total): void {
    session.status = "complete";
    session.total = cents;
    session.charge = { id: this.id("ch"), refunded: 0, disputes: [] };
  }

  async close(): Promise<void> {
    await this.server.stop(true);
  }

  private async answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const form = await request.text();
    this.calls.push(`${request.method} ${url.pathname}`);
    if (this.isDown) return error(503, "Stripe is down");
    if (this.refusal !== null) return error(401, this.refusal);
    if (!/^Bearer sk_test_/.test(request.headers.get("authorization") ?? ""))
      return error(401, "No such key");
    const key = request.headers.get("idempotency-key");
    const before = key === null ? undefined : this.answered.get(key);
    if (before !== undefined && before.form !== form) return error(400, "Other parameters for the same key");
    const body = before?.body ?? this.made_of(request.method, url, new URLSearchParams(form));
    if (body === null) return error(404, `No such thing: ${url.pathname}`);
    if (key !== null) this.answered.set(key, { form, body });
    return this.losesAnswers ? error(502, "The answer was lost") : Response.json(body);
  }

  private made_of(method: string, { pathname, searchParams }: URL, form: URLSearchParams): object | null {
    const [, , kind, second, third] = pathname.split("/");
    if (`${kind} ${second}` === "checkout sessions")
      return method === "POST" ? this.open(form) : this.view(this.sessions.get(third ?? ""));
    if (kind === "disputes") {
      const of = this.opened.find(({ charge }) => charge?.id === searchParams.get("charge"));
      const data = of?.charge?.disputes.map((one) => ({ amount: of.total, ...one })).toReversed() ?? [];
      return { object: "list", data, has_more: false };
    }
    if (kind === "events") {
      const types = [...searchParams].flatMap(([name, value]) => (name.startsWith("types[") ? [value] : []));
      const matching = this.events.filter(({ type }) => types.includes(type));
      const data = matching.map(({ type, object }, at) => ({ id: `evt_${at}`, type, data: { object } }));
      return { object: "list", data, has_more: false };
    }
    if (kind === "payment_intents") {
      const of = this.opened.find(({ intent }) => intent === second);
      return of === undefined ? null : { id: of.intent, metadata: { payment_id: of.payment } };
    }
    if (kind === "refunds" && method === "POST") {
      const of = this.opened.find(({ intent }) => intent === form.get("payment_intent"));
      if (of?.charge == null) return null;
      of.charge.refunded = of.total;
      return { id: this.id("re"), object: "refund", status: "succeeded" };
    }
    return null;
  }

  private open(form: URLSearchParams): object {
    const lines = [0, 1].map((at) => Number(form.get(`line_items[${at}][price_data][unit_amount]`) ?? 0));
    const id = this.id("cs");
    const session: FakeSession = {
      id,
      payment: form.get("client_reference_id")!,
      intent: this.id("pi"),
      status: "open",
      total: lines[0]! + lines[1]!,
      currency: "usd",
      expiresAt: Number(form.get("expires_at")),
      charge: null,
    };
    this.sessions.set(id, session);
    return this.view(session)!;
  }

  private view(session: FakeSession | undefined): object | null {
    if (session === undefined) return null;
    const { id, payment, intent, status, total, currency, expiresAt, charge } = session;
    const metadata = { payment_id: payment };
    return {
      id,
      object: "checkout.session",
      client_reference_id: payment,
      metadata,
      url: status === "open" ? `https://checkout.stripe.example/${id}` : null,
      status,
      payment_status: charge === null ? "unpaid" : "paid",
      amount_total: total,
      currency,
      expires_at: expiresAt,
      payment_intent:
        charge === null
          ? null
          : {
              id: intent,
              metadata,
              latest_charge: {
                id: charge.id,
                amount_refunded: charge.refunded,
                disputed: charge.disputes.length > 0,
                payment_method_details: { card: { brand: "visa", last4: "4242" } },
              },
            },
    };
  }

  private id(prefix: string): string {
    this.made += 1;
    return `${prefix}_test_${this.made}`;
  }
}

export interface FakeSession {
  readonly id: string;
  readonly payment: string;
  readonly intent: string;
  status: "open" | "complete" | "expired";
  total: number;
  currency: string;
  readonly expiresAt: number;
  charge: {
    readonly id: string;
    refunded: number;
    disputes: { id: string; status: string; amount?: number }[];
  } | null;
}

const error = (status: number, message: string): Response =>
  Response.json({ error: { type: "api_error", message } }, { status });

/** An event as Stripe sends it: its body, and the header that the package itself makes of it. */
export async function signedEvent(
  type: string,
  object: object,
  { secret, at }: { readonly secret: string; readonly at: number },
): Promise<{ body: string; signature: string }> {
  const body = JSON.stringify({ id: `evt_${crypto.randomUUID()}`, object: "event", type, data: { object } });
  const timestamp = Math.floor(at / 1_000);
  const { webhooks } = new Stripe("none");
  const signature = await webhooks.generateTestHeaderStringAsync({ payload: body, secret, timestamp });
  return { body, signature };
}
