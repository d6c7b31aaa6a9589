import { connect, type Socket } from "node:net";
import { CONTINUATION, frame, handshake, TEXT } from "../test/fakes/frames.ts";
import { numberOption, option } from "./options.ts";

/**
 * One attack on a gateway, in a process of its own, until it is stopped. Sends a line of JSON every second with
 * what was answered so far.
 *
 *     bun bench/attacker.ts --attack letters --port 8080 --keys a,b
 */
const PORT = numberOption("port", 0);
const KEYS = option("keys", "").split(",");
/** The attacker's own address, where an attack does not say another. */
const FROM = { "x-forwarded-for": option("from", "198.18.0.1") };
/** Recovery secrets of the same balances, and the keys' ids. */
const OWNERS = option("owners", "").split(",");
const IDS = option("ids", "").split(",");
const MOST = numberOption("most", 10_000);
const SECONDS = numberOption("seconds", 20);
const answers: Record<string, number> = {};
const count = (status: number | string): void => {
  answers[status] = (answers[status] ?? 0) + 1;
};

const ATTACKS: Readonly<Record<string, () => Promise<void>>> = {
  /** Ten megabytes in one word, which a tokenizer may take days for. */
  async letters() {
    const letters = new Uint8Array(9_990_000).map((_, at) => 97 + (((at * 2_654_435_761) >>> 8) % 26));
    const content = new TextDecoder().decode(letters);
    const body = JSON.stringify({
      model: "bench/model",
      max_tokens: 16,
      messages: [{ role: "user", content }],
    });
    const send = async (key: string, path: string) => {
      for (;;) count(await post(path, { authorization: `Bearer ${key}` }, body));
    };
    await Promise.all(KEYS.flatMap((key) => [send(key, CHAT), send(key, COUNT)]));
  },

  /** Large bodies that hardly come: four connections a key, 2 kB a second each, each key from another network. */
  async uploads() {
    const slowly = (key: string, n: number) =>
      Array.from({ length: 4 }, () => uploadSlowly(key, networkOf(n)));
    await Promise.all(KEYS.flatMap(slowly));
  },

  /** Keys without an account, from ever other /64 of one /48. */
  setups: () =>
    spread(32, async (n) => {
      const address = `2001:db8:5:${(n % 65_536).toString(16)}::1`;
      count(await post("/v1/keys", { "x-forwarded-for": address }, "{}"));
    }),

  /** As many requests as each key gets answered, small ones. */
  requests: () =>
    withoutEnd(64, (n) => post(CHAT, { authorization: `Bearer ${KEYS[n % KEYS.length]}` }, SMALL)),

  /** The same, with bodies that consist of nothing but values. */
  values: () =>
    withoutEnd(16, (n) => post(CHAT, { authorization: `Bearer ${KEYS[n % KEYS.length]}` }, VALUES)),

  /** Free requests, each key from another network. */
  free: () =>
    withoutEnd(16, (n) =>
      post(
        CHAT,
        { authorization: `Bearer ${KEYS[n % KEYS.length]}`, "x-forwarded-for": networkOf(n % KEYS.length) },
        FREE,
      ),
    ),

  /** Large bodies of endpoints without a prompt, that hardly come. */
  async controls() {
    const slow = async () => {
      for (;;) {
        count(await uploadOnce("POST /v1/auth/email HTTP/1.1\r\ncontent-length: 5000000", 2_000));
        await Bun.sleep(100);
      }
    };
    await Promise.all(Array.from({ length: 32 }, slow));
  },

  /** More keys for balances without credit, made and revoked. */
  keys: () =>
    withoutEnd(8, (n) => post("/v1/keys", { authorization: `Bearer ${OWNERS[n % OWNERS.length]}` }, "{}")),

  /** Changes of keys, each of which is written. */
  changes: () =>
    withoutEnd(16, (n) =>
      post(
        `/v1/keys/${IDS[n % IDS.length]}`,
        { authorization: `Bearer ${OWNERS[n % OWNERS.length]}` },
        JSON.stringify({ name: `n${n}` }),
        "PATCH",
      ),
    ),

  /** Wrong admin tokens, from ever other networks. */
  admin: () =>
    withoutEnd(16, (n) =>
      get("/admin/balances", { authorization: `Bearer wrong-admin-token-${n}`, ...from(n) }),
    ),

  /** Mails, from ever other networks. */
  mails: () =>
    withoutEnd(16, (n) => post("/v1/auth/email", from(n), JSON.stringify({ email: `a${n}@example.com` }))),

  /** Messages for wallets, from ever other networks. */
  wallets: () => {
    const body = JSON.stringify({ address: `0x${"1".repeat(40)}`, chain_id: 1 });
    return withoutEnd(16, (n) => post("/v1/auth/wallet", from(n), body));
  },

  /** Sums of usage. */
  usage: () =>
    withoutEnd(32, (n) =>
      get("/v1/usage?period=month", { authorization: `Bearer ${KEYS[n % KEYS.length]}` }),
    ),

  /** Pages, and keys that do not exist, from ever other networks. */
  pages: () =>
    withoutEnd(16, (n) =>
      get(PAGES[n % PAGES.length]!, {
        authorization: `Bearer or-live-${String(n).padStart(32, "z").replaceAll("0", "y")}`,
        ...from(n),
      }),
    ),

  /** WebSockets from all networks: half send nothing but the largest messages, half events that are refused. */
  async sockets() {
    const largest = JSON.stringify({
      type: "response.create",
      model: "bench/model",
      input: "x".repeat(MESSAGE_BYTES - 1_000),
    });
    const keep = async (key: string, n: number) => {
      for (;;) {
        count(await socketOnce(key, networkOf(n), n % 2 === 0 ? largest : "{}"));
        await Bun.sleep(10);
      }
    };
    await Promise.all(KEYS.flatMap((key, n) => [keep(key, n), keep(key, n)]));
  },

  /** A thousand WebSockets, on each of which a message is declared and never finished. */
  frames: () => thousand([frame(TEXT, PART, { declared: MESSAGE_BYTES }), ...PARTS]),

  /** The same in fragments, of which the last is never sent. */
  fragments: () =>
    thousand(PARTS.map((part, at) => frame(at === 0 ? TEXT : CONTINUATION, part, { last: false }))),

  /** Two thousand connections that stop within their heads. */
  async connections() {
    const open = async () => {
      for (;;) count(await uploadOnce("GET / HTTP/1.1\r\nho", 0));
    };
    await Promise.all(Array.from({ length: 2_000 }, open));
  },

  /** Events as large as may be, which look as if Stripe had signed them just now. */
  async events() {
    const body = "x".repeat(262_144);
    await withoutEnd(16, (n) => {
      const signature = `t=${Math.floor(Date.now() / 1_000)},v1=${"0".repeat(64)}`;
      return post("/webhooks/stripe", { "stripe-signature": signature, ...from(n) }, body);
    });
  },

  /** Pages on which a card is charged. */
  async orders() {
    const bearer = (n: number) => ({ authorization: `Bearer ${OWNERS[n % OWNERS.length]}` });
    const save = (key: string, n: number) => post("/v1/me/saved", bearer(n), JSON.stringify({ key }));
    await Promise.all(KEYS.map(save));
    const order = JSON.stringify({ rail: "card", amount_usd: 1 });
    await withoutEnd(32, (n) => post("/v1/credits", bearer(n), order));
  },

  /** Recovery secrets that do not exist. */
  secrets: () =>
    spread(16, async (n) => {
      const wrong = `or-rec-${String(n).padStart(44, "z").replaceAll("0", "y")}`;
      const { status } = await fetch(url("/v1/keys"), { headers: { authorization: `Bearer ${wrong}` } });
      count(status);
    }),
};

/** `MOST` of them over the seconds of the attack, at most so many at a time. */
async function spread(atOnce: number, once: (n: number) => Promise<void>): Promise<void> {
  const startedMs = performance.now();
  let next = 0;
  const again = async () => {
    while (next < MOST) {
      const n = next++;
      await Bun.sleep(Math.max(0, startedMs + (n / MOST) * SECONDS * 1_000 - performance.now()));
      await once(n);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, again));
}

/** Again and again, so many at a time, a hundred a second at most each. */
async function withoutEnd(atOnce: number, once: (n: number) => Promise<number | string>): Promise<void> {
  let next = 0;
  const again = async () => {
    for (;;) {
      count(await once(next++));
      await Bun.sleep(10);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, again));
}

const networkOf = (n: number): string => `198.18.${n % 256}.${n >> 8}`;
/** An address in a /24 of its own. */
const from = (n: number) => ({
  "x-forwarded-for": `${1 + ((n >> 16) % 200)}.${(n >> 8) % 256}.${n % 256}.1`,
});

const prompt = (model: string, more: object = {}) =>
  JSON.stringify({ model, max_tokens: 16, messages: [{ role: "user", content: "ping" }], ...more });
const SMALL = prompt("bench/model");
const FREE = prompt("bench/free:free");
const VALUES = prompt("bench/model", { zeros: Array(30_000).fill(0) });
const PAGES = ["/docs/errors", "/status", "/openapi.json", "/.well-known/jwks.json", "/v1/me", "/nowhere"];
const CHAT = "/v1/chat/completions";
const COUNT = "/v1/messages/count_tokens";
const url = (path: string): string => `http://127.0.0.1:${PORT}${path}`;

async function get(path: string, headers: Record<string, string>): Promise<number | string> {
  try {
    const answer = await fetch(url(path), { headers: { ...FROM, ...headers } });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return "closed";
  }
}

async function post(
  path: string,
  headers: Record<string, string>,
  body: string,
  method = "POST",
): Promise<number | string> {
  try {
    const answer = await fetch(url(path), {
      method,
      headers: { "content-type": "application/json", ...FROM, ...headers },
      body,
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return "closed";
  }
}

/** Again as soon as the gateway gives it up. */
async function uploadSlowly(key: string, address: string): Promise<never> {
  for (;;) {
    const head = `POST ${CHAT} HTTP/1.1\r\nauthorization: Bearer ${key}\r\nx-forwarded-for: ${address}\r\ncontent-length: 10400000`;
    count(await uploadOnce(head, 2_000));
    // As quickly as a client that keeps to Retry-After would not.
    await Bun.sleep(100);
  }
}

/** A head, and so many bytes of its body a second; without any, the head stays as it is. */
async function uploadOnce(head: string, bytes: number): Promise<number | string> {
  const socket = connect(PORT, "127.0.0.1");
  socket.write(bytes === 0 ? head : `${head}\r\nhost: gateway\r\n\r\n`);
  const trickle = bytes === 0 ? null : setInterval(() => socket.write("x".repeat(bytes)), 1_000);
  const answer = await answerOf(socket);
  if (trickle !== null) clearInterval(trickle);
  socket.destroy();
  return answer;
}

/** Sends the same until the connection is closed; how that was done, or with what it was not opened. */
function socketOnce(key: string, address: string, message: string): Promise<number | string> {
  const headers = { authorization: `Bearer ${key}`, "x-forwarded-for": address };
  const socket = new WebSocket(url("/v1/responses").replace("http", "ws"), { headers } as never);
  return new Promise((resolve) => {
    socket.onopen = () => socket.send(message);
    socket.onmessage = () => socket.send(message);
    socket.onclose = ({ code }) => resolve(code === 1002 ? 426 : code);
    socket.onerror = () => resolve("closed");
  });
}

/** A thousand WebSockets with this on each, opened within two seconds. */
async function thousand(bytes: readonly Buffer[]): Promise<void> {
  const open = async (n: number) => {
    await Bun.sleep(n * 2);
    await unfinished(bytes);
  };
  await Promise.all(Array.from({ length: 1_000 }, (_, n) => open(n)));
}

/** A WebSocket with this on it, and another some seconds after it is closed or refused. */
async function unfinished(bytes: readonly Buffer[]): Promise<never> {
  for (;;) {
    const socket = connect(PORT, "127.0.0.1");
    socket.write(handshake(KEYS[0]!));
    const status = await answerOf(socket);
    count(status);
    if (status === 101) {
      for (const part of bytes) socket.write(part);
      await new Promise((closed) => socket.on("close", closed));
      count("closed");
    }
    socket.destroy();
    await Bun.sleep(5_000);
  }
}

/** The largest message, and all of it but its last part. */
const MESSAGE_BYTES = 524_288;
const PART = Buffer.alloc(65_536, "x");
const PARTS = Array.from({ length: MESSAGE_BYTES / PART.length - 2 }, () => PART);

const answerOf = (socket: Socket): Promise<number | string> =>
  new Promise((resolve) => {
    socket.on("data", (bytes) => resolve(Number(bytes.toString("latin1", 9, 12))));
    socket.on("error", () => resolve("closed"));
    socket.on("close", () => resolve("closed"));
  });

const report = () => console.log(JSON.stringify(answers));
setInterval(report, 200);
await ATTACKS[option("attack", "")]!();
report();
console.log("done");
