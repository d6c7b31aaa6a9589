import { IMAGE_TOKENS, walkPrompt } from "./media.ts";
import { pdfTokenBound } from "./pdf.ts";

/**
 * The most tokens that the files embedded in a prompt come to; null when one of them can be of any size. Reading a large one
 * takes tens of milliseconds.
 */
export function boundFiles(json: Readonly<Record<string, unknown>>): number | null {
  let sum: number | null = 0;
  walkPrompt(json, {
    text() {},
    media({ files }) {
      for (const file of files) {
        const bound = sum === null ? null : boundFile(file);
        sum = sum === null || bound === null ? null : sum + bound;
      }
    },
  });
  return sum;
}

/** Base64, or a data URL. What its sender says that it is, a host may not believe. */
function boundFile(embedded: string): number | null {
  const bytes = Buffer.from(
    embedded.slice(embedded.startsWith("data:") ? embedded.indexOf(",") + 1 : 0),
    "base64",
  );
  if (bytes.subarray(0, PDF_WITHIN).includes("%PDF-")) return pdfTokenBound(bytes, IMAGE_TOKENS);
  return isText(bytes) ? bytes.length : null;
}

/** Readers look for the mark of a PDF so far. */
const PDF_WITHIN = 1_024;

/** Packed documents are binary. */
function isText(bytes: Buffer): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
