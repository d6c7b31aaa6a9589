import { connect, createServer, type Server, type Socket } from "node:net";
import type { Random } from "../sim/random.ts";

/** Passes bytes on in pieces of any length, and breaks connections at any byte for as long as it is faulty. */
export class FaultyLine {
  isFaulty = true;
  breaks = 0;
  private readonly server: Server;

  private constructor(
    private readonly to: string,
    private readonly random: Random,
  ) {
    this.server = createServer((near) => this.join(near));
  }

  /** Between two paths of sockets. */
  static async open(path: string, to: string, random: Random): Promise<FaultyLine> {
    const line = new FaultyLine(to, random);
    await new Promise<void>((listening) => line.server.listen(path, listening));
    return line;
  }

  stop(): void {
    this.server.close();
  }

  private join(near: Socket): void {
    const far = connect(this.to);
    const joined = { near, far, left: this.random.below(this.random.pick([2_000, 200_000])) };
    for (const from of [near, far]) {
      const to = from === near ? far : near;
      from.on("error", () => to.destroy());
      from.on("end", () => to.end());
      from.on("data", async (bytes: Buffer) => {
        from.pause();
        await this.pass(bytes, to, joined);
        from.resume();
      });
    }
  }

  private async pass(bytes: Buffer, to: Socket, joined: Joined): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(bytes.length - at, 1 + this.random.below(this.random.pick([8, 400, 60_000])));
      joined.left -= length;
      if (this.isFaulty && joined.left < 0) {
        this.breaks += 1;
        joined.near.destroy();
        joined.far.destroy();
        return;
      }
      to.write(bytes.subarray(at, at + length));
      at += length;
      if (this.random.chance(0.2)) await turn();
    }
  }
}

interface Joined {
  readonly near: Socket;
  readonly far: Socket;
  /** Bytes of both directions before it breaks. */
  left: number;
}

const turn = () => new Promise((next) => setImmediate(next));
