import { expect, test } from "bun:test";
import { hasPostgres } from "../../postgres/cluster.ts";
import { SET_UPS, type SetUpName } from "./set-ups.ts";
import { storm } from "./storm.ts";

const hasCluster = hasPostgres();

for (const setUp of Object.keys(SET_UPS) as SetUpName[])
  test.skipIf(setUp === "postgres" && !hasCluster)(
    `payments through kills, reorganisations and lost transactions are credited as they moved (${setUp})`,
    async () => {
      const size = { payments: 20, rounds: 5, seed: 1, isQuick: true };
      const { findings, orders } = await storm({ setUp, ...size }, () => {});
      expect({ findings, orders }).toEqual({ findings: [], orders: 20 });
    },
    600_000,
  );
