import type { ResponsesConnection } from "./responses-connection.ts";

type Socket = Bun.ServerWebSocket<ResponsesConnection>;

/**
 * What the server does with WebSockets. Compression is not spoken: it would keep a window for each connection, and events
 * are small. Backpressure is for `ClientSocket` to keep, which waits; the limit here only ends what got past that.
 */
export const WEBSOCKET_HANDLER = {
  open: (socket: Socket) => socket.data.opened(socket),
  message: (socket: Socket, message: string | Uint8Array) => socket.data.received(message),
  drain: (socket: Socket) => socket.data.taken(),
  close: (socket: Socket) => socket.data.closed(),
  ping: (socket: Socket) => socket.data.heard(),
  pong: (socket: Socket) => socket.data.heard(),
  maxPayloadLength: 10_551_296,
  backpressureLimit: 67_108_864,
  // `ResponsesConnection.look` sends pings, and ends what is silent.
  idleTimeout: 240,
  sendPings: false,
  perMessageDeflate: false,
};
