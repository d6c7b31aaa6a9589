import { Bucket } from "../fakes/bucket.ts";
import { exportedLines, sumOf } from "../fakes/exported.ts";
import { until } from "../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "./gateway.ts";

/**
 * Processes of one store, killed one after another while they serve and export: the bucket has to end with every receipt
 * once, and with the sums of the audit.
 *
 *     bun run test/process/export-storm.ts KILLS [STORE …]
 *
 * With `AWS_ENDPOINT_URL_S3` in the environment, the bucket `books` of that server is exported to, and what it has is for
 * others to read.
 */
export async function exportStorm(stores: readonly string[], kills: number): Promise<ExportStorm> {
  const bucket = process.env.AWS_ENDPOINT_URL_S3 === undefined ? new Bucket() : null;
  const env = bucket?.env ?? (process.env as Record<string, string>);
  const folders = stores.map((store) => new Folder(configOf(store)));
  const gateways = await Promise.all(folders.map((folder) => GatewayProcess.start(folder, access(env))));
  try {
    const { key } = await gateways[0]!.keyWith(1_000);
    let served = 0;
    for (let kill = 0; kill < kills; kill++) {
      const servedBefore = served;
      const spending = Array.from({ length: SENDERS }, async () => {
        for (let answered = 0, tries = 0; answered < REQUESTS && tries < MAX_TRIES; tries++) {
          const gateway = gateways[(kill + tries) % gateways.length]!;
          const answer = await gateway.post("/v1/chat/completions", BODY, key).catch(() => null);
          if (answer?.status === 200) {
            answered += 1;
            served += 1;
          } else await Bun.sleep(20);
        }
      });
      await until(() => served > servedBefore);
      // At moments of the second in which it exports.
      await Bun.sleep(100 + ((kill * 137) % 1_100));
      const victim = kill % gateways.length;
      await gateways[victim]!.kill();
      gateways[victim] = await GatewayProcess.start(folders[victim]!, access(env));
      await Promise.all(spending);
    }
    const waiting = async () => {
      const { json } = await gateways[0]!.get("/admin/exports", ADMIN);
      return json.data.some(({ waiting }: { waiting: number }) => waiting > 0);
    };
    await until(async () => !(await waiting()));
    // Nodes ship what they have booked a moment later.
    await Bun.sleep(2_000);
    await until(async () => !(await waiting()));
    const { json: audit } = await gateways[0]!.get("/admin/ledger/audit", ADMIN);
    const receipts = exportedLines(bucket?.files ?? new Map(), "receipts");
    const again = [...(bucket?.puts.values() ?? [])].reduce((sum, puts) => sum + puts - 1, 0);
    return {
      served,
      receipts: receipts.length,
      doubled: receipts.length - new Set(receipts.map(({ id }) => id)).size,
      charges: audit.charges_nano,
      credits: audit.credits_nano,
      exported: String(sumOf(receipts, "charged_nano_usd")),
      drifts: audit.drifts.length,
      files: bucket?.files.size ?? 0,
      putAgain: again,
    };
  } finally {
    for (const gateway of gateways) await gateway.stop();
    for (const folder of folders) folder.remove();
    await bucket?.stop();
  }
}

const SENDERS = 8;
const REQUESTS = 4;
const MAX_TRIES = 2_000;
const BODY = { model: "sim/echo", messages: [{ role: "user", content: "word ".repeat(20) }] };

const configOf = (store: string): string => `
store: ${store}
defaults: { accountless: { rpm_limit: null, tpm_limit: null } }
export: { to: "s3://books/gateway", every: 1s }
`;

const access = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith("AWS_")));

interface ExportStorm {
  /** Answers that clients got. */
  readonly served: number;
  readonly receipts: number;
  readonly doubled: number;
  /** In nano-dollars, as the audit and the export have it. */
  readonly charges: string;
  readonly credits: string;
  readonly exported: string;
  readonly drifts: number;
  readonly files: number;
  readonly putAgain: number;
}

if (import.meta.main) {
  const [kills = "30", ...stores] = process.argv.slice(2);
  console.log(JSON.stringify(await exportStorm(stores.length === 0 ? ["sqlite"] : stores, Number(kills))));
}
