/** The streams that are being relayed, so that a gateway that stops can end each in its client's language. */
export class OpenStreams extends Set<OpenStream> {
  /** Each ends at once, with what was delivered; its client gets `why`. Returns how many there were. */
  cutAll(why: string): number {
    const all = [...this];
    for (const stream of all) stream.cut(why);
    return all.length;
  }
}

interface OpenStream {
  cut(why: string): void;
}
