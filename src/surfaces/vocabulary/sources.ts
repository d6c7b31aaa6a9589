import type { EmbeddedSource, FilePart, ImagePart, LinkedSource, PlainSource } from "./conversation.ts";

/** An address, a data URL, or bare base64, which is a PDF: the one kind of file that is sent so. */
export function fileSource(data: string): FilePart["source"] {
  if (/^https?:/.test(data)) return { from: "url", url: data };
  const embedded = readDataUrl(data);
  return embedded === null
    ? { from: "base64", mediaType: "application/pdf", data }
    : { from: "base64", ...embedded };
}

export function sourceOf(url: string): ImagePart["source"] {
  const embedded = readDataUrl(url);
  return embedded === null ? { from: "url", url } : { from: "base64", ...embedded };
}

/** OpenAI refuses a file without one. */
export const DEFAULT_NAME = "document.pdf";

/** `data:<type>;base64,<data>`; null for any other address. */
function readDataUrl(url: string): { mediaType: string; data: string } | null {
  if (!url.startsWith("data:")) return null;
  const comma = url.indexOf(",");
  const head = url.slice("data:".length, Math.max(comma, 0));
  if (comma === -1 || !head.endsWith(";base64")) return null;
  return { mediaType: head.slice(0, -";base64".length).split(";")[0]!, data: url.slice(comma + 1) };
}

/** Where the bytes are, or the bytes themselves, as an address. */
export const urlOf = (source: LinkedSource | EmbeddedSource): string =>
  source.from === "url" ? source.url : `data:${source.mediaType};base64,${source.data}`;

/** A plain text needs no file; its title goes before it. */
export const titledText = ({ text }: PlainSource, title: string | null): string =>
  title === null ? text : `${title}\n\n${text}`;
