import { expect, test } from "bun:test";
import { headStart } from "../../src/hosts/http1/request.ts";

const OWN = [
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
const ENDPOINT = {
  origin: "http://h",
  secure: false,
  hostname: "h",
  port: 80,
  authority: "h",
  prefix: "/v1",
  query: "",
};

test.each(OWN)("%s is the transport's own: a caller's is not sent", (name) => {
  const headers = { [name]: "theirs", "x-mine": "sent" };
  const head = headStart({ method: "POST", path: "/a", headers }, ENDPOINT);
  expect(Buffer.from(head).toString()).toBe(
    "POST /v1/a HTTP/1.1\r\nhost: h\r\nconnection: keep-alive\r\naccept-encoding: identity\r\nx-mine: sent\r\n",
  );
});
