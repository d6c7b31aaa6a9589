/**
 * A host that fails the way real ones do: raw sockets on loopback, so that a test decides over every byte,
 * reset and silence. No sleeps: a behaviour waits on gates that the test opens, and the test waits on what
 * the host has seen.
 *
 *     const host = await startFakeHost((request, n) => (n === 0 ? status(503) : sse(chatText(["Hel", "lo"]).events)));
 *     const row = hostRow(host, { speaks: ["chat.completions"] });
 *     … run the code under test against `row` …
 *     expect(host.requests[0]!.json()).toEqual({ … });
 *     await host.close();
 *
 * `n` counts the host's requests from 0. The behaviours are in behaviours.ts, canonical bodies in
 * transcripts.ts. To see a cancelled call arrive: `await (await host.arrived(0)).gone`.
 */
import net from "node:net";
import tls from "node:tls";
import type { Host } from "../../src/catalog/catalog.ts";
import { type Gate, gate } from "./gate.ts";
import type { Wire } from "./wire.ts";
import { socketWire } from "./wire.ts";

/**
 * What the host does with a request, once it has arrived whole. The connection takes the next one when this
 * resolves.
 */
export type Behaviour = (wire: Wire, request: FakeRequest) => void | Promise<void>;
export type Script = (request: FakeRequest, n: number) => Behaviour;

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  /** Lower-case names; the last one of a repeated field. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Number of the connection that it came on, from 0. */
  readonly connection: number;
  /** Resolves when the client's side of that connection is gone. */
  readonly gone: Promise<void>;
  text(): string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
  json(): any;
}

export interface FakeHost {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  readonly port: number;
  readonly requests: readonly FakeRequest[];
  /** Connections accepted so far, and those open now. */
  readonly connections: number;
  readonly openConnections: number;
  /** The nth request, once it has arrived. */
  arrived(n: number): Promise<FakeRequest>;
  /** Resolves when no connection is open. */
  idle(): Promise<void>;
  /** Ends the connections that are open, as a host does that restarts: in order, or by a reset. */
  dropConnections(how: "close" | "reset"): void;
  close(): Promise<void>;
}

export interface FakeTls {
  readonly key: string;
  readonly cert: string;
}

export async function startFakeHost(script: Script, secure?: FakeTls): Promise<FakeHost> {
  const host = new SocketHost(script, secure);
  await host.listen();
  return host;
}

/** A row of the catalog that leads to the host. */
export function hostRow(host: { readonly url: string }, row: Partial<Host> = {}): Host {
  return {
    id: "fake",
    baseUrl: `${host.url}/v1`,
    speaks: ["chat.completions"],
    apiKey: "host-secret",
    auth: "bearer",
    headers: {},
    onDisconnect: "cancel",
    quirks: {},
    ...row,
  };
}

/**
 * A port on which nobody listens: tcpmux, which no machine serves. One that was free a moment ago may be
 * given to the host of another test by then.
 */
export const REFUSED_PORT = 1;

class SocketHost implements FakeHost {
  readonly requests: FakeRequest[] = [];
  connections = 0;
  readonly #script: Script;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  readonly #arrivals: Gate<FakeRequest>[] = [];
  #idle: Gate<void>[] = [];

  constructor(script: Script, secure: FakeTls | undefined) {
    this.#script = script;
    const accept = (socket: net.Socket): void => this.#accept(socket);
    this.#server = secure ? tls.createServer({ ...secure }, accept) : net.createServer(accept);
    // A client that refuses the certificate.
    this.#server.on("tlsClientError", () => {});
  }

  listen(): Promise<void> {
    return new Promise((listening) => this.#server.listen(0, "127.0.0.1", listening));
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  get url(): string {
    return `${this.#server instanceof tls.Server ? "https" : "http"}://127.0.0.1:${this.port}`;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  arrived(n: number): Promise<FakeRequest> {
    return this.#arrival(n).passed;
  }

  idle(): Promise<void> {
    const waiting = gate();
    if (this.#sockets.size === 0) waiting.open();
    else this.#idle.push(waiting);
    return waiting.passed;
  }

  dropConnections(how: "close" | "reset"): void {
    for (const socket of this.#sockets) {
      if (how === "reset") socket.resetAndDestroy();
      else socket.end();
    }
  }

  async close(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #accept(socket: net.Socket): void {
    const connection = this.connections++;
    const gone = gate();
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    // A client that leaves by a reset; `close` follows.
    socket.on("error", () => {});
    socket.on("end", () => gone.open());
    socket.on("close", () => {
      gone.open();
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) for (const waiting of this.#idle.splice(0)) waiting.open();
    });
    void this.#serve(socket, connection, gone.passed);
  }

  async #serve(socket: net.Socket, connection: number, gone: Promise<void>): Promise<void> {
    const wire = socketWire(socket);
    for (;;) {
      const request = await wire.nextRequest(connection, gone);
      if (request === null) return;
      const n = this.requests.push(request) - 1;
      this.#arrival(n).open(request);
      await this.#script(request, n)(wire, request);
    }
  }

  #arrival(n: number): Gate<FakeRequest> {
    while (this.#arrivals.length <= n) this.#arrivals.push(gate<FakeRequest>());
    return this.#arrivals[n]!;
  }
}
