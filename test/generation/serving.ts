import { afterEach } from "bun:test";
import type { Host } from "../../src/catalog/catalog.ts";
import { closeAll } from "../fakes/close-all.ts";
import { type Behaviour, type FakeHost, hostRow, type Script, startFakeHost } from "../fakes/host.ts";
import { openTestGateway, type TestGateway, type TestGatewayOptions } from "./test-gateway.ts";

/** What a host does, and its row in the catalog. */
export type Behaving = readonly [Behaviour, Partial<Host>?];

/** Opens hosts and gateways for the tests of a file, and closes them after each. */
export function openedPerTest() {
  const hosts: FakeHost[] = [];
  const gateways: TestGateway[] = [];
  afterEach(() => closeAll(...gateways.splice(0), ...hosts.splice(0)));

  async function startHost(script: Script): Promise<FakeHost> {
    const host = await startFakeHost(script);
    hosts.push(host);
    return host;
  }
  async function openGateway(rows: readonly Host[], options?: TestGatewayOptions): Promise<TestGateway> {
    const gateway = await openTestGateway(rows, options);
    gateways.push(gateway);
    return gateway;
  }
  /** A gateway with the hosts `h0`, `h1`, …. */
  async function serving(behaving: readonly Behaving[], options?: TestGatewayOptions) {
    const started = await Promise.all(behaving.map(([behaviour]) => startHost(() => behaviour)));
    const rows = started.map((host, at) => hostRow(host, { id: `h${at}`, ...behaving[at]![1] }));
    return { gateway: await openGateway(rows, options), hosts: started };
  }
  return { startHost, openGateway, serving };
}
