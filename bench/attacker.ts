import { connect, type Socket } from "node:net";
import { option } from "./option.ts";

/**
 * One attack on a gateway, in a process of its own, until it is stopped. Sends a line of JSON every second with
 * what was answered so far.
 *
 *     bun bench/attacker.ts --attack letters --port 8080 --keys a,b
 */
const PORT = Number(option("port", "0"));
const KEYS = option("keys", "").split(",");
const MOST = Number(option("most", "10000"));
const SECONDS = Number(option("seconds", "20"));
const answers: Record<string, number> = {};
const told = (status: number | string): void => {
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
      for (;;) told(await post(path, { authorization: `Bearer ${key}` }, body));
    };
    await Promise.all(KEYS.flatMap((key) => [send(key, CHAT), send(key, COUNT)]));
  },

  /** Large bodies that hardly come: four connections a key, 2 kB a second each, each key from another network. */
  async uploads() {
    const from = (n: number) => `198.51.${n % 256}.${Math.floor(n / 256)}`;
    await Promise.all(KEYS.flatMap((key, n) => Array.from({ length: 4 }, () => uploadSlowly(key, from(n)))));
  },

  /** Keys without an account, from ever other /64 of one /48. */
  setups: () =>
    spread(32, async (n) => {
      const from = `2001:db8:5:${(n % 65_536).toString(16)}::1`;
      told(await post("/v1/keys", { "x-forwarded-for": from }, "{}"));
    }),

  /** Recovery secrets that do not exist. */
  secrets: () =>
    spread(16, async (n) => {
      const wrong = `or-rec-${String(n).padStart(44, "z").replaceAll("0", "y")}`;
      const { status } = await fetch(url("/v1/keys"), { headers: { authorization: `Bearer ${wrong}` } });
      told(status);
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

const CHAT = "/v1/chat/completions";
const COUNT = "/v1/messages/count_tokens";
const url = (path: string): string => `http://127.0.0.1:${PORT}${path}`;

async function post(path: string, headers: Record<string, string>, body: string): Promise<number | string> {
  try {
    const answer = await fetch(url(path), {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return "closed";
  }
}

/** Again as soon as the gateway gives it up. */
async function uploadSlowly(key: string, from: string): Promise<never> {
  for (;;) {
    const socket = connect(PORT, "127.0.0.1");
    socket.write(
      `POST ${CHAT} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\nx-forwarded-for: ${from}\r\ncontent-length: 10400000\r\n\r\n`,
    );
    const trickle = setInterval(() => socket.write("x".repeat(2_000)), 1_000);
    told(await answerOf(socket));
    clearInterval(trickle);
    socket.destroy();
    // As quickly as a client that keeps to Retry-After would not.
    await Bun.sleep(100);
  }
}

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
