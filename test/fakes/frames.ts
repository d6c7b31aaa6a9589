/** Frames of a WebSocket client (RFC 6455, section 5.2), also such as no client may send. */
export function frame(opcode: number, payload: string | Uint8Array, options: FrameOptions = {}): Buffer {
  const { last = true, masked = true, reserved = 0, declared } = options;
  const bytes = Buffer.from(payload);
  const length = declared ?? bytes.length;
  const mask = masked ? 0x80 : 0;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = (last ? 0x80 : 0) | reserved | opcode;
  if (length < 126) head[1] = mask | length;
  else if (length < 65_536) {
    head[1] = mask | 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = mask | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  if (!masked) return Buffer.concat([head, bytes]);
  for (let at = 0; at < bytes.length; at++) bytes[at]! ^= MASK[at % 4]!;
  return Buffer.concat([head, MASK, bytes]);
}

export interface FrameOptions {
  /** The last frame of its message. */
  readonly last?: boolean;
  readonly masked?: boolean;
  /** The three reserved bits, where they stand. */
  readonly reserved?: number;
  /** In the place of the length that it has. */
  readonly declared?: number;
}

export const [CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG] = [0, 1, 2, 8, 9, 10] as const;
const MASK = Buffer.from([0x11, 0x22, 0x33, 0x44]);

/** What opens a connection. */
export const handshake = (key: string, more = ""): string =>
  `GET /v1/responses HTTP/1.1\r\nHost: gateway.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer ${key}\r\n${more}\r\n`;
