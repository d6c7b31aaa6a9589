import { expect, test } from "bun:test";
import { notifiesOwnersOnce } from "../../gateway/own-low-credit.ts";
import { Folder, GatewayProcess } from "../../process/gateway.ts";

test("two workers notify owners once of each crossing of their own threshold", async () => {
  const folder = new Folder("workers: 2\n");
  const gateway = await GatewayProcess.start(folder);
  try {
    await notifiesOwnersOnce([gateway.url]);
    expect((await gateway.audit()).json.ok).toBe(true);
  } finally {
    await gateway.stop();
    folder.remove();
  }
}, 120_000);
