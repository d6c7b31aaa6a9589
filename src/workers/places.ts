import { PlaceBook } from "../limits/place-book.ts";
import type { PlacesMessage, ToWorker } from "./messages.ts";

/** The places at hosts that workers share: a book for each limit that any of them has in force. */
export class Places {
  private readonly books = new Map<string, PlaceBook>();

  constructor(
    private readonly workers: number,
    private readonly tell: (worker: number, message: ToWorker) => void,
  ) {}

  hear(worker: number, { kind, host, most, count }: PlacesMessage): void {
    const key = `${most} ${host}`;
    const book = this.books.get(key) ?? this.open(host, most);
    this.books.set(key, book);
    if (kind === "places_wanted") book.asked(worker, count);
    else book.returned(worker, count);
    if (book.idle) this.books.delete(key);
  }

  /** The worker's process has ended. */
  ended(worker: number): void {
    for (const [key, book] of this.books) {
      book.ended(worker);
      if (book.idle) this.books.delete(key);
    }
  }

  private open(host: string, most: number): PlaceBook {
    return new PlaceBook(most, this.workers, {
      give: (worker, count) => this.tell(worker, { kind: "places_given", host, most, count }),
      recall: (worker, count) => this.tell(worker, { kind: "places_recalled", host, most, count }),
    });
  }
}
