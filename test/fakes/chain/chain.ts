import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { authorizationTypes } from "@x402/evm";
import {
  createPublicClient,
  createTestClient,
  defineChain,
  http,
  parseAbi,
  parseAbiItem,
  walletActions,
} from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { atEnd } from "../../at-end.ts";

/** USDC's address on Base Sepolia: clients that nobody has configured trust it there. */
export const USDC = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
export const NETWORK = "eip155:84532";
/** anvil's first account, which pays for everybody's gas. */
const GAS_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const CODE = join(dirname(new URL(import.meta.url).pathname), "token-code.txt");
const ABI = parseAbi([
  "function balanceOf(address) view returns (uint256)",
  "function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, bytes)",
]);

const TRANSFER = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

type Hex = `0x${string}`;

export interface WaitingTransaction {
  readonly hash: Hex;
  readonly nonce: number;
}

export interface Arrival {
  readonly transaction: string;
  readonly from: string;
  readonly usd: number;
}

export interface SignedTransfer {
  readonly authorization: {
    readonly from: Hex;
    readonly to: Hex;
    readonly value: string;
    readonly validAfter: string;
    readonly validBefore: string;
    readonly nonce: Hex;
  };
  readonly signature: Hex;
}

/** As a wallet does it. */
export async function signTransfer(
  wallet: PrivateKeyAccount,
  authorization: SignedTransfer["authorization"],
): Promise<SignedTransfer> {
  const { value, validAfter, validBefore } = authorization;
  const signature = await wallet.signTypedData({
    domain: { name: "USDC", version: "2", chainId: 84532, verifyingContract: USDC },
    types: authorizationTypes,
    primaryType: "TransferWithAuthorization",
    message: {
      ...authorization,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
    },
  });
  return { authorization, signature };
}

/** A chain of its own on this machine, with a dollar token. */
export class LocalChain {
  /** A block is final once two epochs of so many blocks have followed it. */
  static async start({ blocksInEpoch = 1 } = {}): Promise<LocalChain> {
    const require = createRequire(import.meta.url);
    const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
    const folder = dirname(require.resolve("@foundry-rs/anvil/package.json"));
    const anvil = createRequire(join(folder, "package.json")).resolve(
      `@foundry-rs/anvil-${platform}/package.json`,
    );
    const child = Bun.spawn(
      [
        join(dirname(anvil), "bin/anvil"),
        ...["--port", "0", "--chain-id", "84532", "--slots-in-an-epoch", `${blocksInEpoch}`],
      ],
      { stdout: "pipe", stderr: "ignore", stdin: "ignore" },
    );
    atEnd(async () => child.kill());
    const chain = new LocalChain(child, await listening(child.stdout));
    await chain.putToken();
    return chain;
  }

  /** Puts the token at USDC's address, or another one that `change` makes of its code. */
  async putToken(change: (code: string) => string = (code) => code, address: Hex = USDC): Promise<void> {
    const code = (await Bun.file(CODE).text()).trim();
    await this.client.setCode({ address, bytecode: change(code) as Hex });
  }

  readonly client;
  private readonly reader;
  /** The last transaction: two that are sent at once would have one nonce. */
  private sent: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly child: Bun.Subprocess,
    readonly rpc: string,
  ) {
    const chain = defineChain({
      id: 84532,
      name: "local",
      nativeCurrency: { name: "gas", symbol: "GAS", decimals: 18 },
      rpcUrls: { default: { http: [rpc] } },
    });
    const account = privateKeyToAccount(GAS_KEY);
    this.client = createTestClient({ mode: "anvil", chain, account, transport: http(rpc) }).extend(
      walletActions,
    );
    this.reader = createPublicClient({ chain, transport: http(rpc), cacheTime: 0 });
  }

  /** Somebody with so many dollars. */
  async wallet(usd: number): Promise<PrivateKeyAccount> {
    const account = privateKeyToAccount(generatePrivateKey());
    await this.mint(account.address, usd);
    return account;
  }

  async mint(to: `0x${string}`, usd: number): Promise<void> {
    await this.client.setStorageAt({
      address: USDC,
      index: await balanceSlot(to),
      value: `0x${BigInt(usd * 1_000_000)
        .toString(16)
        .padStart(64, "0")}`,
    });
  }

  async balanceOf(address: `0x${string}`): Promise<number> {
    const units = await this.reader.readContract({
      address: USDC,
      abi: ABI,
      functionName: "balanceOf",
      args: [address],
    });
    return Number(units) / 1_000_000;
  }

  /** How many of the account's transactions are in blocks. */
  transactionsOf(address: Hex): Promise<number> {
    return this.reader.getTransactionCount({ address });
  }

  /** Transactions of the account that wait for a block. */
  async waitingOf(account: Hex): Promise<WaitingTransaction[]> {
    const { pending, queued } = (await this.client.getTxpoolContent()) as unknown as Record<
      "pending" | "queued",
      Record<string, Record<string, { hash: Hex; nonce: Hex }>>
    >;
    return [pending, queued].flatMap((part) =>
      Object.entries(part)
        .filter(([from]) => from.toLowerCase() === account.toLowerCase())
        .flatMap(([, byNonce]) => Object.values(byNonce))
        .map(({ hash, nonce }) => ({ hash, nonce: Number(nonce) })),
    );
  }

  /** Transfers of the token to the address, in all blocks. */
  async arrivals(to: Hex): Promise<Arrival[]> {
    const logs = await this.reader.getLogs({
      address: USDC,
      event: TRANSFER,
      args: { to },
      fromBlock: 0n,
      strict: true,
    });
    return logs.map(({ args, transactionHash }) => ({
      transaction: transactionHash,
      from: args.from.toLowerCase(),
      usd: Number(args.value) / 1_000_000,
    }));
  }

  /** Carries a signed transfer out, as anybody may who has it. */
  carryOut({ authorization, signature }: SignedTransfer): Promise<string> {
    const { from, to, value, validAfter, validBefore, nonce } = authorization;
    const send = () =>
      this.client.writeContract({
        address: USDC,
        abi: ABI,
        functionName: "transferWithAuthorization",
        args: [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature],
        gas: 300_000n,
      });
    const sending = this.sent.then(send, send);
    this.sent = sending;
    return sending;
  }

  /** False: transactions wait until `mine`. */
  async minesAtOnce(isOn: boolean): Promise<void> {
    await this.client.setAutomine(isOn);
  }

  mine(blocks = 1): Promise<void> {
    return this.client.mine({ blocks });
  }

  /** Drops the last blocks and the transactions in them, and has others take their place. */
  async reorg(depth: number): Promise<void> {
    await this.client.request({ method: "anvil_reorg", params: [depth, []] } as never);
  }

  /** The account that carries signed transfers out, for facilitators and for everybody else. */
  get sender(): `0x${string}` {
    return this.client.account.address;
  }

  /** A gas account of its own, so that nobody else's nonces are in the way. */
  async gasKey(): Promise<`0x${string}`> {
    const key = generatePrivateKey();
    await this.client.setBalance({ address: privateKeyToAccount(key).address, value: 10n ** 18n });
    return key;
  }

  stop(): void {
    this.child.kill();
  }
}

async function balanceSlot(address: `0x${string}`): Promise<`0x${string}`> {
  const { encodeAbiParameters, keccak256 } = await import("viem");
  return keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [address, 0n]));
}

async function listening(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`anvil ended: ${text}`);
    text += decoder.decode(value);
    const found = /Listening on ([\d.:]+)/.exec(text);
    if (found === null) continue;
    // A pipe that nobody reads would stop it.
    void (async () => {
      while (!(await reader.read()).done);
    })();
    return `http://${found[1]}`;
  }
}
