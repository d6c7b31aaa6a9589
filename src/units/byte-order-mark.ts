/**
 * Editors and shells of Windows, and some hosts, put a byte order mark before UTF-8. Readers of JSON may refuse it (RFC 8259,
 * section 8.1, allows either).
 */
export const withoutByteOrderMark = (bytes: Uint8Array): Uint8Array =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
