import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GatewaySettings, startGateway } from "./gateway-process.ts";
import type { Peer, Subject } from "./peers/peer.ts";
import { type Measured, start } from "./processes.ts";

/** Where a bench takes place: a folder of its own, a host, and gateways or peers in front of it. */
export interface Scene {
  readonly folder: string;
  readonly host: Measured;
  gateway(name: string, settings?: GatewaySettings): Promise<Measured>;
  /** With a folder of this name to write into. */
  peer(peer: Peer, name?: string): Promise<Subject>;
  /** Called when the scene ends. */
  onEnd(end: () => unknown): void;
}

/** All that is started in a scene ends with it, in the opposite order, however the run ends. */
export async function inScene<T>(name: string, run: (scene: Scene) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const host = await startHost();
    ends.push(() => host.stop());
    return await run({
      folder,
      host,
      async gateway(at, settings = {}) {
        const gateway = await startGateway(join(folder, at), host.port, settings);
        ends.push(() => gateway.stop());
        return gateway;
      },
      async peer(peer, at = peer.name) {
        const path = join(folder, at.replaceAll(/\W+/g, "-"));
        mkdirSync(path, { recursive: true });
        const subject = await (await peer.install(folder)).start(host.port, path);
        ends.push(() => subject.process.stop());
        return subject;
      },
      onEnd: (end) => void ends.push(end),
    });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** bench/mock-host.ts, on this port where it is named. */
export const startHost = (port?: number): Promise<Measured> =>
  start([
    process.execPath,
    join(import.meta.dir, "mock-host.ts"),
    ...(port === undefined ? [] : ["0", "64", "0", String(port)]),
  ]);
