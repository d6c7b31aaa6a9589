/**
 * The short form of the peers' run: the gateway as a process next to the bare host and, where it is installed,
 * nginx.
 *
 *     bun run bench macro [--rounds 5] [--seconds 0.5] [--streams 400] [--warm 4]
 */
import { numberOption } from "./options.ts";
import { bareHost } from "./peers/bare-host.ts";
import { bareProxy } from "./peers/bare-proxy.ts";
import { gateway } from "./peers/gateway.ts";
import { nginx } from "./peers/nginx.ts";
import { tables } from "./peers/report.ts";
import { PARTS } from "./peers/rounds.ts";
import { benchPeers, type PeersRun, type PeersSize } from "./peers.ts";

export const benchMacro = (
  size: Pick<PeersSize, "rounds" | "seconds" | "streams" | "warmUpSeconds">,
  progress: (line: string) => void,
): Promise<PeersRun> =>
  benchPeers(
    [bareHost, nginx, bareProxy, gateway],
    {
      ...size,
      passes: 1,
      connections: [1, 16, 64],
      parts: PARTS.filter((part) => part !== "kinds"),
      ...ROUNDS_ALONE,
    },
    progress,
  );

const ROUNDS_ALONE = { open: [], settleMs: 0, faults: false } as const;

if (import.meta.main) {
  const size = {
    rounds: numberOption("rounds", 5),
    seconds: numberOption("seconds", 0.5),
    streams: numberOption("streams", 400),
    warmUpSeconds: numberOption("warm", 4),
  };
  console.log(tables(await benchMacro(size, console.error)));
}
