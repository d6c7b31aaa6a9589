import { SURFACE_NAMES, type SurfaceName } from "../../../src/catalog/catalog.ts";
import { type Behaviour, type FakeHost, type FakeRequest, startFakeHost } from "../../fakes/host.ts";
import type { Transcript } from "../../fakes/hosts/transcript.ts";
import { violations, type WireName } from "../../surfaces/wire-schema.ts";
import { type OpenGateway, open } from "../open.ts";
import { replaying } from "./replaying.ts";

/**
 * A gateway with a model on a host of each language: `<language>/model`, and `<language>/whole`, which it is
 * only asked for without a stream.
 */
export class TestGateway {
  /** What the host answers next; the last one goes on being said. */
  answers: Transcript[] = [];
  /** What the host does instead of answering. */
  instead: Behaviour | null = null;

  private constructor(
    readonly gateway: OpenGateway,
    readonly host: FakeHost,
    readonly key: string,
  ) {}

  static async open(): Promise<TestGateway> {
    let deps: TestGateway;
    const host = await startFakeHost((request) => {
      if (deps.instead !== null) return deps.instead;
      const [next, ...later] = deps.answers;
      if (later.length > 0) deps.answers = later;
      return replaying(next!, request);
    });
    const hosts = SURFACE_NAMES.map(
      (surface) => `  - { id: "${surface}", base_url: "${host.url}/v1", speaks: [${surface}] }`,
    );
    const served = (surface: SurfaceName, name: string, quirks: string) => `
  - id: ${surface}/${name}
    name: Test
    context_length: 200000
    max_output_tokens: 64000
    price: { input: 1, output: 10 }
    routes: [{ host: "${surface}", model: host-model${quirks} }]`;
    const models = SURFACE_NAMES.flatMap((surface) => [
      served(surface, "model", ""),
      served(surface, "whole", ", quirks: { no_stream: true }"),
    ]);
    const gateway = await open(`hosts:\n${hosts.join("\n")}\nmodels:${models.join("")}\n`);
    const limits = { rpm_limit: 100_000, tpm_limit: 1_000_000_000, daily_limit_usd: 1_000 };
    const { key } = await gateway.key(1_000, limits);
    deps = new TestGateway(gateway, host, key);
    return deps;
  }

  get url(): string {
    return this.gateway.url;
  }

  /** The nth request to the host from the end. */
  sent(fromEnd = 1): ReturnType<FakeRequest["json"]> {
    return this.host.requests.at(-fromEnd)!.json();
  }

  /** The same, translated: it has to be one that the host's own SDK could have sent. */
  translated(surface: SurfaceName, fromEnd = 1): ReturnType<FakeRequest["json"]> {
    const body = this.sent(fromEnd);
    const wrong = violations(REQUEST[surface], body);
    if (wrong.length > 0)
      throw new Error(`${JSON.stringify(body)} is no request of ${surface}: ${wrong.join("; ")}`);
    return body;
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await this.host.close();
  }
}

const REQUEST: Readonly<Record<SurfaceName, WireName>> = {
  "chat.completions": "chatRequest",
  responses: "responsesRequest",
  messages: "messagesRequest",
};
