import { afterAll, expect, test } from "bun:test";
import { hashMessage } from "viem/utils";
import { open } from "./open.ts";

const CONTRACT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const SIGNATURE = `0x${"cd".repeat(90)}`;
/** What its contract is: a 32-byte word, as nodes answer `eth_call`. */
const word = (hex: string) => `0x${hex.padEnd(64, "0")}`;
const REVERTED = { code: 3, message: "execution reverted", data: "0x" };

/**
 * A node of a chain, as far as signatures go: it says that `SIGNATURE` is the contract's for every message.
 */
class FakeNode {
  chainId = 8453;
  answer: "valid" | "no" | "no contract" | "reverts" | "fails" = "valid";
  readonly calls: { to: string; data: string }[] = [];
  private readonly server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => this.reply(request),
  });

  get url(): string {
    return `http://127.0.0.1:${this.server.port}/v2/node-key`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  private async reply(request: Request): Promise<Response> {
    const { id, method, params } = (await request.json()) as {
      id: number;
      method: string;
      params: [{ to: string; data: string }];
    };
    const result = (value: unknown) => Response.json({ jsonrpc: "2.0", id, result: value });
    if (this.answer === "fails") return new Response("busy", { status: 503 });
    if (method === "eth_chainId") return result(`0x${this.chainId.toString(16)}`);
    this.calls.push(params[0]);
    if (this.answer === "reverts") return Response.json({ jsonrpc: "2.0", id, error: REVERTED });
    if (this.answer === "no contract") return result("0x");
    const right = params[0].data.includes(SIGNATURE.slice(2));
    return result(this.answer === "valid" && right ? word("1626ba7e") : word("ffffffff"));
  }
}

const node = new FakeNode();
const gateway = await open(`wallet: { rpc: { 8453: "${node.url}" } }\n`);
afterAll(async () => {
  await gateway.close();
  await node.stop();
});

const send = (path: string, json: object) => gateway.send("POST", path, { json });
async function signIn(chain_id = 8453, signature = SIGNATURE) {
  const { message } = (await send("/v1/auth/wallet", { address: CONTRACT, chain_id })).json;
  const answer = await send("/v1/auth/wallet/verify", { message, signature });
  return { message, status: answer.status, session: answer.json.session, error: answer.json.error?.message };
}

test("a contract that takes the signature for its own signs in, under its chain's name", async () => {
  const { status, session, message } = await signIn();
  expect(status).toBe(200);
  const { account } = (await gateway.send("GET", "/v1/me", { bearer: session })).json;
  expect(account.wallet).toBe(`eip155:8453:${CONTRACT}`);
  expect(node.calls[0]!.to.toLowerCase()).toBe(CONTRACT.toLowerCase());
  expect(node.calls[0]!.data).toStartWith("0x1626ba7e");
  expect(node.calls[0]!.data).toContain(hashMessage(message).slice(2));
});

test.each(["no", "no contract", "reverts"] as const)("one that answers %p does not", async (answer) => {
  node.answer = answer;
  const { status, error } = await signIn();
  node.answer = "valid";
  expect(status).toBe(400);
  expect(error).toContain(`is not ${CONTRACT}'s signature`);
});

test("a node that fails, or serves another chain, signs nobody in, and the message can be sent again", async () => {
  const { message } = (await send("/v1/auth/wallet", { address: CONTRACT, chain_id: 8453 })).json;
  const verify = () => send("/v1/auth/wallet/verify", { message, signature: SIGNATURE });
  node.answer = "fails";
  expect((await verify()).json.error.message).toContain("chain 8453 did not answer");
  node.answer = "valid";
  node.chainId = 1;
  expect((await verify()).json.error.message).toContain("chain 8453 did not answer");
  node.chainId = 8453;
  expect((await verify()).status).toBe(200);
});

test("a chain without a configured node takes signatures of key pairs only", async () => {
  const before = node.calls.length;
  expect((await signIn(1)).status).toBe(400);
  expect(node.calls.length).toBe(before);
});

test("the node's address is not shown with its key", async () => {
  const { text } = await gateway.admin("/admin/config");
  expect(text).toContain('"8453"');
  expect(text).not.toContain("node-key");
});
