import { afterAll, expect, test } from "bun:test";
import { ownerAddress, urlProblem } from "../../src/hosts/owner-address.ts";
import { OwnerConnection } from "../../src/hosts/owner-connection.ts";
import { isPublicAddress } from "../../src/hosts/public-address.ts";
import { systemClock } from "../../src/units/clock.ts";

test.each([
  ["8.8.8.8", true],
  ["2606:4700:4700::1111", true],
  ["10.1.2.3", false],
  ["172.16.0.1", false],
  ["172.31.255.255", false],
  ["172.32.0.1", true],
  ["192.168.1.1", false],
  ["127.0.0.1", false],
  ["0.0.0.0", false],
  ["169.254.169.254", false],
  ["168.63.129.16", false],
  ["100.64.0.1", false],
  ["100.127.255.255", false],
  ["192.0.2.1", false],
  ["198.18.0.1", false],
  ["224.0.0.1", false],
  ["239.255.255.250", false],
  ["255.255.255.255", false],
  ["::1", false],
  ["::", false],
  ["fe80::1", false],
  ["fc00::1", false],
  ["fd12:3456::1", false],
  ["fd00:ec2::254", false],
  ["ff02::1", false],
  ["::ffff:127.0.0.1", false],
  ["::ffff:7f00:1", false],
  ["::ffff:8.8.8.8", false],
  ["::127.0.0.1", false],
  ["64:ff9b::7f00:1", false],
  ["64:ff9b:1::1", false],
  ["2002:7f00:1::", false],
  ["2001:0:4136:e378::1", false],
  ["2001:db8::1", false],
  ["2606:4700::1%eth0", false],
  ["example.com", false],
])("%s is on the internet: %p", (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic);
});

test.each([
  ["https://hooks.example.com/x?y=1", "public", null],
  ["https://hooks.example.com:8443/x", "public", null],
  ["https://8.8.8.8/x", "public", null],
  ["https://[2606:4700:4700::1111]/x", "public", null],
  ["http://hooks.example.com/x", "public", "https://"],
  ["ftp://hooks.example.com/x", "public", "https://"],
  ["hooks.example.com", "public", "https://"],
  ["https://hooks.example.com:22/x", "public", "port"],
  ["https://user:secret@hooks.example.com/", "public", "user"],
  ["https://hooks.example.com/#x", "public", "fragment"],
  ["https://localhost/x", "public", "internet"],
  ["https://intranet/x", "public", "internet"],
  ["https://a.localhost/x", "public", "internet"],
  ["https://127.0.0.1/x", "public", "internet"],
  ["https://2130706433/x", "public", "internet"],
  ["https://0x7f.1/x", "public", "internet"],
  ["https://169.254.169.254./latest", "public", "internet"],
  ["https://[::1]/x", "public", "internet"],
  ["https://[::ffff:10.0.0.1]/x", "public", "internet"],
  [`https://hooks.example.com/${"x".repeat(500)}`, "public", "500"],
  ["http://127.0.0.1:9/x", "public", "https://"],
  ["http://127.0.0.1:9/x", "loopback", null],
  ["http://10.0.0.1/x", "loopback", "https://"],
  ["https://hooks.example.com/x", "off", "sends no events"],
] as const)("owners' address %s where %s is allowed: %p", (url, allowed, problem) => {
  const found = urlProblem(url, allowed);
  if (problem === null) expect(found).toBeNull();
  else expect(found).toContain(problem);
});

test.each([
  [["10.0.0.1"], null],
  [["8.8.8.8", "10.0.0.1"], null],
  [["8.8.8.8", "::ffff:127.0.0.1"], null],
  [[], null],
  [["8.8.8.8", "2606:4700::1"], "8.8.8.8"],
])("a name with the addresses %p leads to %p", async (addresses, address) => {
  const deps = { resolve: async () => addresses, clock: systemClock };
  expect(await ownerAddress("https://hooks.example.com/", "public", deps)).toBe(address);
});

/** Counts who connects, and answers as `answer` says. */
function listener(hostname: string, port: number, answer: (() => Response) | null) {
  let requests = 0;
  const server = Bun.serve({
    hostname,
    port,
    fetch() {
      requests += 1;
      return answer?.() ?? new Response("taken");
    },
  });
  return { server, requests: () => requests };
}

const BODY = new TextEncoder().encode("{}");
const connectionTo = (
  url: string,
  resolve: () => Promise<readonly string[]>,
  isPublic?: (a: string) => boolean,
) =>
  new OwnerConnection(url, {
    allowed: () => "public",
    resolve,
    clock: systemClock,
    onFault() {},
    ...(isPublic === undefined ? {} : { isPublic }),
  });

const servers: Bun.Server<unknown>[] = [];
afterAll(() => Promise.all(servers.map((one) => one.stop(true))));

test("private addresses are never connected to, whatever name leads there", async () => {
  let connections = 0;
  const counting = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open() {
        connections += 1;
      },
      data() {},
    },
  });
  const { port } = counting;
  for (const addresses of [
    ["127.0.0.1"],
    ["::ffff:127.0.0.1"],
    ["8.8.8.8", "127.0.0.1"],
    ["localhost"],
    [],
  ]) {
    const connection = connectionTo(`https://hooks.example.com:${port}/`, async () => addresses);
    expect(await connection.post({}, BODY)).toEqual({
      message: "the URL leads to no address on the internet",
    });
    connection.close();
  }
  for (const url of [
    `https://127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}/`,
    `https://localhost:${port}/`,
  ]) {
    const connection = connectionTo(url, async () => ["127.0.0.1"]);
    expect(await connection.post({}, BODY)).toHaveProperty("message");
    connection.close();
  }
  expect(connections).toBe(0);
  counting.stop(true);
});

test("a name that resolves to another address the next time is not resolved a second time", async () => {
  let first = 0;
  let second = 0;
  const count = (hostname: string, port: number, add: () => void) =>
    Bun.listen({
      hostname,
      port,
      socket: {
        open(socket) {
          add();
          socket.end();
        },
        data() {},
      },
    });
  // 127.0.0.2 stands for an address on the internet.
  const open = count("127.0.0.2", 0, () => {
    first += 1;
  });
  const hidden = count("127.0.0.1", open.port, () => {
    second += 1;
  });
  const answers = [["127.0.0.2"], ["127.0.0.1"]];
  let resolved = 0;
  const connection = connectionTo(
    `https://hooks.example.com:${open.port}/`,
    async () => answers[Math.min(resolved++, 1)]!,
    (address) => address === "127.0.0.2",
  );
  for (let event = 0; event < 5; event++) expect(await connection.post({}, BODY)).toHaveProperty("message");
  connection.close();
  expect(resolved).toBe(1);
  expect(first).toBeGreaterThanOrEqual(5);
  expect(second).toBe(0);
  open.stop(true);
  hidden.stop(true);
});

test("a redirect is not followed: its status is the answer", async () => {
  const target = listener("127.0.0.1", 0, null);
  const redirecting = listener("127.0.0.1", 0, () => Response.redirect(target.server.url.href, 307));
  servers.push(target.server, redirecting.server);
  const connection = new OwnerConnection(redirecting.server.url.href, {
    allowed: () => "loopback",
    resolve: async () => [],
    clock: systemClock,
    onFault() {},
  });
  expect(await connection.post({}, BODY)).toBe(307);
  connection.close();
  expect([redirecting.requests(), target.requests()]).toEqual([1, 0]);
});
