/** The streams that are being relayed, so that a gateway that stops can end each in its client's language. */
export class OpenStreams {
  private readonly streams = new Set<OpenStream>();

  opened(stream: OpenStream): void {
    this.streams.add(stream);
  }

  ended(stream: OpenStream): void {
    this.streams.delete(stream);
  }

  /** Each ends at once, with what was delivered; its client is told why. */
  cutAll(why: string): void {
    for (const stream of [...this.streams]) stream.cut(why);
  }
}

export interface OpenStream {
  cut(why: string): void;
}
