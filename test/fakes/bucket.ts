/** A bucket on a real socket that takes files as S3 does: whole or not at all, and only signed. */
export class Bucket {
  readonly files = new Map<string, Uint8Array>();
  /** How often each was put. */
  readonly puts = new Map<string, number>();
  /** What it answers to every request, instead of taking the file. */
  away: number | null = null;
  refused = 0;
  private readonly server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.answer(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  /** What a gateway needs in its environment. */
  get env(): Record<string, string> {
    return {
      AWS_ACCESS_KEY_ID: "AKIATEST",
      AWS_SECRET_ACCESS_KEY: SECRET,
      AWS_REGION: "us-east-1",
      AWS_ENDPOINT_URL_S3: this.url,
    };
  }

  async stop(): Promise<void> {
    await this.server.stop(true);
  }

  private async answer(request: Request): Promise<Response> {
    if (this.away !== null) return this.refuse(this.away);
    const isSigned = request.headers
      .get("authorization")
      ?.startsWith("AWS4-HMAC-SHA256 Credential=AKIATEST/");
    if (request.method !== "PUT" || isSigned !== true) return this.refuse(403);
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length !== Number(request.headers.get("content-length"))) return this.refuse(400);
    const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
    this.files.set(name, bytes);
    this.puts.set(name, (this.puts.get(name) ?? 0) + 1);
    return new Response(null, { headers: { etag: `"${Bun.hash(bytes).toString(16)}"` } });
  }

  private refuse(status: number): Response {
    this.refused += 1;
    return new Response(`<Error><Code>${status === 503 ? "SlowDown" : "AccessDenied"}</Code></Error>`, {
      status,
    });
  }
}

const SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
