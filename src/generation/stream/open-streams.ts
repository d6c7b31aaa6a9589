/** The streams that are being relayed, so that a gateway that stops can end each in its client's language. */
export class OpenStreams {
  private readonly streams = new Set<OpenStream>();

  get count(): number {
    return this.streams.size;
  }

  opened(stream: OpenStream): void {
    this.streams.add(stream);
  }

  ended(stream: OpenStream): void {
    this.streams.delete(stream);
  }

  /** Each ends at once, with what was delivered; its client gets `why`. Returns how many there were. */
  cutAll(why: string): number {
    const all = [...this.streams];
    for (const stream of all) stream.cut(why);
    return all.length;
  }
}

export interface OpenStream {
  cut(why: string): void;
}
