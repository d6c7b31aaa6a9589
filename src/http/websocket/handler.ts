import type { ResponsesConnection } from "./responses-connection.ts";

type Socket = Bun.ServerWebSocket<ResponsesConnection>;

/**
 * What the server does with WebSockets. It closes with 1009 as soon as a frame's head, or the fragments so far, say that
 * the message is larger. Compression is not spoken: it would keep a window for each connection, and events
 * are small. Backpressure is for `ClientSocket` to keep, which waits; the limit here only ends what got past that.
 */
export const webSocketHandler = (messageBytes: number) => ({
  open: (socket: Socket) => socket.data.opened(socket),
  message: (socket: Socket, message: string | Uint8Array) => socket.data.received(message),
  drain: (socket: Socket) => socket.data.taken(),
  close: (socket: Socket, _code: number, reason: string) => socket.data.closed(reason === SENT_TOO_MUCH),
  ping: (socket: Socket) => socket.data.noteActivity(),
  pong: (socket: Socket) => socket.data.noteActivity(),
  maxPayloadLength: messageBytes,
  backpressureLimit: 67_108_864,
  // `ResponsesConnection` sends pings and closes silent sockets.
  idleTimeout: 240,
  sendPings: false,
  perMessageDeflate: false,
});

/** Bun's reason for closing with 1009, which it reports here as 1006. */
const SENT_TOO_MUCH = "Received too big message";
