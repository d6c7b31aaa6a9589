import { describe } from "bun:test";
import { Folder, GatewayProcess } from "../process/gateway.ts";
import { type Served, testClaims } from "./claims.ts";

const process =
  (more: string) =>
  async (config: string): Promise<Served> => {
    const folder = new Folder(config + more);
    const started = async (): Promise<Served> => {
      const gateway = await GatewayProcess.start(folder);
      return {
        urls: [gateway.url],
        async stop() {
          await gateway.kill();
          folder.remove();
        },
        async killed() {
          await gateway.kill();
          return started();
        },
      };
    };
    return started();
  };

describe("a payment taken back at one gateway", () => testClaims(process(""), true));
describe("a payment taken back at two workers", () => testClaims(process("workers: 2\n"), true));
